"""The Helm chart: what it renders is valid, restricted, and starts the server with options that it has."""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from runvitals.cli import run, server
from runvitals.store.samples.clickhouse import parse_address
from runvitals.version import __version__

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "runvitals"
GOLDEN = Path(__file__).parent / "rendered_chart.yaml"
OUTSIDE = {
    "server": {"replicas": 3, "workers": 2, "otlpGrpc": True, "maxSize": "2TB", "environment": {"TZ": "UTC"}},
    "clickhouse": "clickhouses://runvitals@clickhouse.example:8443/runvitals?cluster=fleet",
    "postgresql": "postgresql://runvitals@postgres.example/runvitals",
    "files": "s3://training/runvitals",
    "secret": {"existing": "runvitals-secret"},
    "backup": {"enabled": True},
    "ingress": {"enabled": True},
    "serviceMonitor": {"enabled": True, "interval": "1m30s"},
    "networkPolicy": {"from": [{"namespaceSelector": {"matchLabels": {"team": "web"}}}]},
}
SETS: dict[str, dict[str, Any]] = {
    "one server": {"secret": {"existing": "runvitals"}},
    "one server with a backup": {
        "backup": {"enabled": True, "keep": 3, "schedule": "@daily"},
        "server": {"maxSize": "100GB"},
    },
    "below a path": {
        "secret": {"existing": "runvitals"},
        "ingress": {"enabled": True, "path": "/tools/runvitals"},
    },
    "several servers": OUTSIDE,
    "a trial of several servers": {"trialStores": {"enabled": True}, "server": {"replicas": 2}},
    "odd values": {
        "server": {
            "ipv6": True,
            "trustedProxies": "fd00::/8, 10.0.0.0/8",
            "resources": None,
            "environment": {"A": "yes", "B": "1: #2\n'"},
            "environmentFrom": [{"secretRef": {"name": "mail"}}],
            "serviceAccount": {"annotations": {"role": "a\"b'c: d"}},
        },
        "files": "s3://training/a",
        "ingress": {
            "enabled": True,
            "tlsSecret": "",
            "annotations": {"nginx.ingress.kubernetes.io/proxy-body-size": "9m", "note": 'it\'s "so": #1'},
        },
    },
    "collectors": {
        "collectors": {
            "enabled": True,
            "runtimeClassName": "nvidia",
            "server": "https://runs.example",
            "arguments": ["--tags=a, b"],
        },
        "secret": {"existing": "runvitals"},
    },
}
Manifest = dict[str, Any]


def helm(*arguments: str, values: dict[str, Any] | None = None) -> subprocess.CompletedProcess[str]:
    program = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("helm is not installed")
    return subprocess.run(
        [program, *arguments, "--values", "-"], input=json.dumps(values or {}), capture_output=True, text=True
    )


@cache
def text_of(name: str) -> str:
    rendered = helm("template", "vitals", str(CHART), "--namespace", "ml", values=SETS[name])
    assert rendered.returncode == 0, rendered.stderr
    return rendered.stdout


def rendered(name: str) -> list[Manifest]:
    return [document for document in yaml.safe_load_all(text_of(name)) if document]


def templates_of_pods(name: str) -> Iterator[tuple[str, Manifest]]:
    for document in rendered(name):
        spec = document.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield document["metadata"]["name"], spec["template"]


@pytest.mark.parametrize("name", SETS)
def test_the_manifests_are_valid(name: str) -> None:
    for document in rendered(name):
        if document["kind"] != "ServiceMonitor":  # of an operator, not of Kubernetes
            kubernetes_validate.validate(document, "1.32", strict=True)
        assert document["metadata"]["labels"]["app.kubernetes.io/instance"] == "vitals"


@pytest.mark.parametrize("name", SETS)
def test_every_selector_selects_pods_of_the_chart(name: str) -> None:
    pods = [template["metadata"]["labels"] for _, template in templates_of_pods(name)]
    for document in rendered(name):
        spec = document.get("spec", {})
        selector = spec.get("selector") or spec.get("podSelector") or {}
        labels = selector.get("matchLabels", selector)
        if document["kind"] != "ServiceMonitor" and labels:
            assert any(labels.items() <= pod.items() for pod in pods), document["metadata"]["name"]


@pytest.mark.parametrize("name", SETS)
def test_pods_are_restricted(name: str) -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    for pod_name, template in templates_of_pods(name):
        spec = template["spec"]
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        for container in spec["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        allowed = {"configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
        if pod_name.endswith("-collectors"):
            allowed.add("hostPath")
        else:
            assert not {"hostPID", "hostNetwork", "hostIPC"} & spec.keys()
        assert all(volume.keys() - {"name"} <= allowed for volume in spec.get("volumes", ()))


@pytest.mark.parametrize("name", SETS)
def test_only_keys_of_the_secret_are_used(name: str) -> None:
    made = ("admin-password", "secrets.key", "postgres-password", "clickhouse-password", "bucket-password")
    secret = SETS[name].get("secret", {}).get("existing", "vitals-runvitals")
    used = [
        item["valueFrom"]["secretKeyRef"]
        for _, template in templates_of_pods(name)
        for container in template["spec"]["containers"]
        for item in container["env"]
        if "secretKeyRef" in item.get("valueFrom", {})
    ]
    own = [reference for reference in used if reference["name"] == secret]
    assert {reference["key"] for reference in own} <= set(made)
    others = {reference["name"] for reference in used} - {secret}
    assert others == ({"runvitals-collectors"} if name == "collectors" else set())


def test_the_secret_that_the_chart_makes_can_be_used() -> None:
    [secret] = [document for document in rendered("one server with a backup") if document["kind"] == "Secret"]
    identifier, _, key = base64.b64decode(secret["data"]["secrets.key"]).decode().strip().partition(":")
    assert len(bytes.fromhex(identifier)) == 4
    assert len(base64.b64decode(key)) == 32
    assert len(set(secret["data"].values())) == len(secret["data"])


@pytest.mark.parametrize("name", SETS)
def test_the_server_has_these_options(name: str) -> None:
    pods = {pod_name: template["spec"]["containers"][0] for pod_name, template in templates_of_pods(name)}
    program, *arguments = pods["vitals-runvitals"]["args"]
    assert program == "runvitals"
    parser = argparse.ArgumentParser()
    server.add(parser)
    parsed = parser.parse_args(arguments[1:])
    assert parsed.listen[1] == 8900
    assert parsed.path == SETS[name].get("ingress", {}).get("path", "")
    if parsed.store is not None:
        assert parse_address(parsed.store, {}).database == "runvitals"
        assert parsed.catalogue.startswith("postgresql://runvitals@")
    if "vitals-runvitals-backup" in pods:
        options = [word for word in arguments if word.startswith(("--store", "--metadata"))]
        command = pods["vitals-runvitals-backup"]["command"]
        assert command[-len(options) :] == options if options else command[-1] == "backup"


def test_the_collector_has_these_options() -> None:
    [collector] = [
        template["spec"]["containers"][0]
        for pod_name, template in templates_of_pods("collectors")
        if pod_name.endswith("-collectors")
    ]
    program, *arguments = collector["args"]
    assert program == "runvitals"
    parser = argparse.ArgumentParser()
    run.add(parser)
    parsed = parser.parse_args([word.replace("$(NODE_NAME)", "gpu-1") for word in arguments[1:]])
    assert parsed.run_id == ["node-gpu-1"]
    assert {item["name"]: item.get("value") for item in collector["env"]}[
        "RUNVITALS_SERVER"
    ] == "https://runs.example"


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"server": {"replicas": 3}}, "several servers or workers need clickhouse, postgresql and files"),
        ({"server": {"workers": 2}}, "several servers or workers need clickhouse, postgresql and files"),
        ({"clickhouse": OUTSIDE["clickhouse"]}, "clickhouse needs postgresql"),
        ({"server": {"replica": 3}}, "replica is not allowed"),
        ({"server": {"keep": "90"}}, "Does not match pattern"),
        (
            {"postgresql": "postgresql://runvitals:secret@postgres.example/runvitals"},
            "Does not match pattern",
        ),
        ({"ingress": {"path": "runvitals; }"}}, "Does not match pattern"),
        ({"image": {"pullPolicy": "Sometimes"}}, "must be one of"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any], complaint: str) -> None:
    refused = helm("template", "vitals", str(CHART), values=values)
    assert refused.returncode != 0
    assert complaint in refused.stderr


def test_the_chart_is_well_formed_and_of_this_version() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__
    linted = helm("lint", str(CHART), "--strict", values=OUTSIDE)
    assert linted.returncode == 0, linted.stdout


def test_a_change_of_what_is_rendered_is_seen() -> None:
    """To write the file again: `helm template …` as in `text_of`, with `several servers`."""
    assert text_of("several servers") == GOLDEN.read_text()


def test_odd_values_arrive_as_they_were_given() -> None:
    documents = {document["kind"]: document for document in rendered("odd values")}
    container = documents["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
    assert "--listen=[::]:8900" in container["args"]
    assert "--trusted-proxies=fd00::/8, 10.0.0.0/8" in container["args"]
    assert {"name": "B", "value": "1: #2\n'"} in container["env"]
    assert container["envFrom"] == [{"secretRef": {"name": "mail"}}]
    annotations = documents["Ingress"]["metadata"]["annotations"]
    assert annotations["nginx.ingress.kubernetes.io/proxy-body-size"] == "9m"
    assert annotations["nginx.ingress.kubernetes.io/proxy-buffering"] == "off"
    assert annotations["note"] == 'it\'s "so": #1'


def test_long_names_of_releases_are_shortened() -> None:
    values = {"trialStores": {"enabled": True}, "backup": {"enabled": True}, "collectors": {"enabled": True}}
    text = helm("template", "v" * 53, str(CHART), "--namespace", "ml", values=values).stdout
    names = {
        document["metadata"]["name"]: document["kind"] for document in yaml.safe_load_all(text) if document
    }
    limited = [name for name, kind in names.items() if kind in ("StatefulSet", "CronJob")]
    assert max(map(len, limited)) == 52
    assert max(map(len, names)) <= 63
