"""The files of deploy/ are valid, fit each other, and start the server with options that it has."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runvitals.cli import server
from runvitals.model.account_names import entity_name
from runvitals.server.database.database import FURTHER_CONNECTIONS, POOLED_CONNECTIONS
from runvitals.store.samples.clickhouse import parse_address

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = DEPLOY / "compose" / "compose.yaml"
# Two more for locks and for notifications.
CONNECTIONS = POOLED_CONNECTIONS + FURTHER_CONNECTIONS + 2


def test_the_image_has_fixed_versions_of_the_packages_that_are_needed() -> None:
    lines = (DEPLOY / "constraints.txt").read_text().splitlines()
    fixed = dict(line.split("==") for line in lines if line[:1] != "#")
    extras = re.findall(r"\.whl\)\[([\w,-]+)\]", (DEPLOY / "Dockerfile").read_text())[0].split(",")
    requirements = map(Requirement, metadata.requires("runvitals") or ())
    for requirement in requirements:
        if requirement.marker and any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
            assert fixed[canonicalize_name(requirement.name)] in requirement.specifier


def test_the_image_is_built_from_all_that_the_wheel_needs() -> None:
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    sent = {line[1:] for line in lines if line.startswith("!")}
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", "hatch_build.py", "web", project["project"]["readme"]}
    needed |= {*wheel["packages"], *wheel["force-include"], *project["project"]["license-files"]}
    assert {path for path in needed if path not in sent and path.split("/")[0] not in sent} == set()


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
    servers = [name for name in services if name.startswith("server-")]
    assert services["postgres"]["command"][-1] == f"max_connections={len(servers) * CONNECTIONS + 4}"
    for named in re.findall(r"server [\w-]+ ([\w-]+):8900", (DEPLOY / "proxies" / "haproxy.cfg").read_text()):
        assert named in services


def test_the_first_administrator_may_have_the_name_that_the_files_give() -> None:
    composed = yaml.safe_load(COMPOSE.read_text())
    values = yaml.safe_load((DEPLOY / "helm" / "runvitals" / "values.yaml").read_text())
    environment = composed["services"]["server-1"]["environment"]
    for name in (environment["RUNVITALS_ADMIN_NAME"], values["admin"]["name"]):
        assert entity_name(name) == name


def commands() -> dict[str, list[str]]:
    """The arguments of `runvitals server` in each file."""
    composed = yaml.safe_load(COMPOSE.read_text())
    shell = composed["services"]["server-1"]["command"][-1]
    image = re.findall(r"^CMD \[(.*)\]$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[-1]
    return {
        "compose": shlex.split(shell[shell.index("runvitals server") :]),
        "Dockerfile": [word.strip(' "') for word in image.split(",")],
    }


@pytest.mark.parametrize("file", ["compose", "Dockerfile"])
def test_the_server_has_these_options(file: str) -> None:
    program, *arguments = commands()[file]
    assert program == "runvitals"
    parser = argparse.ArgumentParser()
    server.add(parser)
    parsed = parser.parse_args(arguments[1:])
    assert parsed.listen[1] == 8900
    if file != "Dockerfile":
        assert parse_address(parsed.store, {}).database == "runvitals"
        assert parsed.catalogue == "postgresql://runvitals@postgres/runvitals"
