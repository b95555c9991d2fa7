{{- define "runvitals.name" -}}
{{- /* The name of a StatefulSet or CronJob has at most 52 characters, of which `-clickhouse` has 11. */ -}}
{{- if contains "runvitals" .Release.Name }}{{ .Release.Name | trunc 41 | trimSuffix "-" }}{{ else }}{{ printf "%s-runvitals" (.Release.Name | trunc 31 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "runvitals.labels" -}}
app.kubernetes.io/name: runvitals
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* Labels by which pods of one kind are found: (list . "server"). */}}
{{- define "runvitals.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: runvitals
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "runvitals.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "runvitals.secret" -}}
{{ .Values.secret.existing | default (include "runvitals.name" .) }}
{{- end }}

{{- define "runvitals.clickhouse" -}}
{{ ternary (printf "clickhouse://runvitals@%s-clickhouse:8123/runvitals" (include "runvitals.name" .)) .Values.clickhouse .Values.trialStores.enabled }}
{{- end }}

{{- define "runvitals.postgresql" -}}
{{ ternary (printf "postgresql://runvitals@%s-postgresql/runvitals" (include "runvitals.name" .)) .Values.postgresql .Values.trialStores.enabled }}
{{- end }}

{{- define "runvitals.files" -}}
{{ ternary "s3://runvitals/files" .Values.files .Values.trialStores.enabled }}
{{- end }}

{{- define "runvitals.listen" -}}
{{ ternary "[::]" "0.0.0.0" .Values.server.ipv6 }}
{{- end }}

{{/* What Pod Security `restricted` asks of a pod, and of a container. */}}
{{- define "runvitals.podSecurity" -}}
runAsUser: 10001
runAsGroup: 10001
runAsNonRoot: true
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "runvitals.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The addresses of the stores, as options of `runvitals server` and of `runvitals store`. */}}
{{- define "runvitals.storeOptions" -}}
{{- with include "runvitals.clickhouse" . }}
- {{ printf "--store=%s" . | quote }}
{{- end }}
{{- with include "runvitals.postgresql" . }}
- {{ printf "--metadata=%s" . | quote }}
{{- end }}
{{- end }}

{{- define "runvitals.storeEnvironment" -}}
- {name: RUNVITALS_DIR, value: /data}
{{- if include "runvitals.clickhouse" . }}
- {name: CLICKHOUSE_PASSWORD_FILE, value: /run/secrets/runvitals/clickhouse-password}
{{- end }}
{{- if include "runvitals.postgresql" . }}
- name: PGPASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "runvitals.secret" . }}, key: postgres-password}}
{{- end }}
{{- if include "runvitals.files" . }}
- {name: AWS_REGION, value: {{ .Values.bucket.region | quote }}}
{{- $endpoint := ternary (printf "http://%s-bucket:9000" (include "runvitals.name" .)) .Values.bucket.endpoint .Values.trialStores.enabled }}
{{- with $endpoint }}
- {name: AWS_ENDPOINT_URL_S3, value: {{ . | quote }}}
{{- end }}
{{- with ternary "runvitals" .Values.bucket.accessKeyId .Values.trialStores.enabled }}
- {name: AWS_ACCESS_KEY_ID, value: {{ . | quote }}}
- name: AWS_SECRET_ACCESS_KEY
  valueFrom: {secretKeyRef: {name: {{ include "runvitals.secret" $ }}, key: bucket-password}}
{{- end }}
{{- end }}
{{- end }}

{{/* Connections to PostgreSQL: 32 of each process and 2 of its locks and notifications, 4 for administration. */}}
{{- define "runvitals.connections" -}}
{{ add (mul .Values.server.replicas .Values.server.workers 34) 4 }}
{{- end }}
