"""The files of deploy/ are valid, fit each other, and start the server with options that it has."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from runvitals.cli import server
from runvitals.store.samples.clickhouse import parse_address

DEPLOY = Path(__file__).parents[1] / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
COMPOSE = DEPLOY / "compose" / "compose.yaml"


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_manifests_are_valid(path: Path) -> None:
    for document in documents(path):
        kubernetes_validate.validate(document, "1.32", strict=True)


def test_a_wrong_manifest_is_found() -> None:
    wrong = documents(DEPLOY / "kubernetes" / "servers.yaml")[0] | {"specs": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, "1.32", strict=True)


def test_the_compose_file_is_valid() -> None:
    if sys.version_info >= (3, 14):
        pytest.skip("this machine's Python is too new for compose-viz")
    from compose_viz.spec.compose_spec import ComposeSpecification

    composed = yaml.safe_load(COMPOSE.read_text())
    ComposeSpecification.model_validate({key: part for key, part in composed.items() if key[:2] != "x-"})
    services, volumes, secrets = (composed[name] for name in ("services", "volumes", "secrets"))
    for service in services.values():
        assert set(service.get("depends_on", ())) <= services.keys()
        assert set(service.get("secrets", ())) <= secrets.keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert source in volumes or (COMPOSE.parent / source).exists()
    for named in re.findall(r"server ([\w-]+):8900", (COMPOSE.parent / "nginx.conf").read_text()):
        assert named in services


def commands() -> dict[str, list[str]]:
    """The arguments of `runvitals server` in each file."""
    composed = yaml.safe_load(COMPOSE.read_text())
    shell = composed["services"]["server-1"]["command"][-1]
    [of_pods] = [
        document["spec"]["template"]["spec"]["containers"][0]["args"]
        for document in documents(DEPLOY / "kubernetes" / "servers.yaml")
        if document["kind"] == "StatefulSet"
    ]
    image = re.findall(r"^CMD \[(.*)\]$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[-1]
    return {
        "compose": shlex.split(shell[shell.index("runvitals server") :]),
        "kubernetes": of_pods,
        "Dockerfile": [word.strip(' "') for word in image.split(",")],
    }


@pytest.mark.parametrize("file", ["compose", "kubernetes", "Dockerfile"])
def test_the_server_has_these_options(file: str) -> None:
    program, *arguments = commands()[file]
    assert program == "runvitals"
    parser = argparse.ArgumentParser()
    server.add(parser.add_subparsers())
    parsed = parser.parse_args(arguments)
    assert parsed.listen[1] == 8900
    if file != "Dockerfile":
        assert parse_address(parsed.store, {}).database == "runvitals"
        assert parsed.catalogue == "postgresql://runvitals@postgres/runvitals"


def test_every_secret_that_is_used_is_in_the_example() -> None:
    [example] = documents(DEPLOY / "kubernetes" / "secret.example.yaml")
    used = set(re.findall(r"key: ([\w-]+-password)", "".join(path.read_text() for path in MANIFESTS)))
    used |= set(re.findall(r"/run/secrets/runvitals/([\w.-]+)", MANIFESTS[1].read_text()))
    assert used == set(example["stringData"])
