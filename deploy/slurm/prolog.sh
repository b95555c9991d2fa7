#!/bin/sh
# Prolog= of slurm.conf: records each node of a job as long as the job has it, as the job's user, whether or not the
# job's programs use runvitals. All nodes of a job are one run, slurm-CLUSTER-JOB. A failure must not drain the node.
export PATH="${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}:/opt/runvitals/bin" # Slurm sets none
command -v runvitals >/dev/null && [ -n "$SLURM_JOB_ID" ] && [ -n "$SLURM_JOB_USER" ] || exit 0
[ -r /etc/runvitals/slurm.env ] && . /etc/runvitals/slurm.env # RUNVITALS_SERVER, RUNVITALS_TOKEN, RUNVITALS_DIR
run=slurm-${SLURM_CLUSTER_NAME:-cluster}-$SLURM_JOB_ID
folder=${RUNVITALS_PROLOG_FOLDER:-/run/runvitals}
mkdir -p "$folder" || exit 0
export RUNVITALS_SERVER RUNVITALS_TOKEN RUNVITALS_DIR
setsid runuser --user "$SLURM_JOB_USER" -- runvitals run --quiet \
    --run-id "$run" --name "${SLURM_JOB_NAME:-job} $SLURM_JOB_ID" --project "${SLURM_JOB_PARTITION:-slurm}" \
    --gpu-ids "${SLURM_JOB_GPUS:-}" --labels "job=$SLURM_JOB_ID" \
    -- sh -c 'trap "exit 0" TERM; sleep infinity & wait' </dev/null >/dev/null 2>&1 &
echo $! > "$folder/$SLURM_JOB_ID.pid"
exit 0
