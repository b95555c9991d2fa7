"""Registries in Python and on the command line."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import runvitals
from runvitals.cli import main
from runvitals.model.artifacts import UnknownArtifact
from runvitals.readers.servers.connection import ServerError
from runvitals.readers.servers.registries import ServerRegistry
from runvitals.sdk.artifacts.links import link_target
from tests.server.registry.conftest import Registries


@pytest.fixture(scope="module")
def models(registries: Registries) -> Registries:
    registries.ok("carol", "POST", json={"name": "models"})
    registries.ok("alice", "PUT", "/models/admins/bob")
    registries.ok("bob", "PUT", "/models/protected-aliases/production")
    return registries


@pytest.fixture
def open_registry(models: Registries) -> Iterator[Callable[[str], ServerRegistry]]:
    with ExitStack() as clients:

        def opened(who: str) -> ServerRegistry:
            client = clients.enter_context(runvitals.Client(models.served.url, models.served.keys[who]))
            return client.registry("vision/models")

        yield opened


def test_the_client_links_reads_and_downloads(
    models: Registries, open_registry: Callable[[str], ServerRegistry], tmp_path: Path
) -> None:
    carol = open_registry("carol")
    linked = carol.link("team/weights:v0", "numbers", ["staging"])
    assert (linked["version"], linked["aliases"]) == (0, ["latest", "staging"])
    carol.link("vision/team/weights:v1", "numbers")
    assert [row["version"] for row in carol.versions("numbers")] == [1, 0]
    assert [row["name"] for row in carol.collections("NUMB")] == ["numbers"]
    folder = carol.download("numbers:staging", str(tmp_path / "out"))
    assert Path(folder, "model.bin").read_bytes() == b"model 0"
    carol.set_alias("numbers:v1", "staging")
    assert carol.version("numbers:staging")["version"] == 1
    carol.delete_alias("numbers", "staging")
    with pytest.raises(ServerError, match="no version 'staging'"):
        carol.version("numbers:staging")
    with pytest.raises(ServerError, match="bob may change it"):
        carol.set_alias("numbers:v1", "production")
    request = carol.request_alias("numbers:v1", "production", "It is better.")
    bob = open_registry("bob")
    assert [row["id"] for row in bob.requests("open")] == [request["id"]]
    assert bob.decide(request["id"], "approve")["state"] == "approved"
    assert carol.version("numbers:production")["version"] == 1
    carol.unlink("numbers:v0")
    assert [row["version"] for row in carol.versions("numbers")] == [1]
    with runvitals.Client(models.served.url, models.served.keys["vera"]) as client:
        assert "models" in [row["name"] for row in client.registries()]


def test_the_command_does_the_same(
    models: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", models.served.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", models.served.keys["carol"])

    def command(*arguments: str) -> str:
        assert main(["registry", *arguments]) == 0
        return capsys.readouterr().out

    name = "vision/models/by command"
    assert command("link", "team/weights:v2", name, "--alias", "best") == f"{name}:v0\n"
    assert "by command  model  best v0, latest v0" in command("ls", "vision/models")
    assert "vision/models" in command("ls")
    assert "best, latest" in command("ls", name)
    command("alias", f"{name}:v0", "staging")
    folder = command("get", f"{name}:staging", "-o", str(tmp_path / "out")).strip()
    assert Path(folder, "model.bin").read_bytes() == b"model 2"
    number = command("alias", f"{name}:v0", "production", "--request", "please").split()[-1]
    assert f"{number}" in command("requests", "vision/models")
    assert command("decide", "vision/models", number, "withdraw") == f"request {number} is withdrawn\n"
    command("alias", name, "staging", "--remove")
    command("unlink", f"{name}:v0")
    assert command("ls", name) == ""


@pytest.fixture
def collected() -> Iterator[None]:
    """Collect what a test leaves behind before the next one begins."""
    yield
    gc.collect()


# An artifact keeps its connection for further reads, until it is collected.
@pytest.mark.usefixtures("collected")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_run_links_what_it_logged(
    models: Registries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNVITALS_SERVER", models.served.url)
    monkeypatch.setenv("RUNVITALS_TOKEN", models.served.keys["carol"])
    (tmp_path / "model.pt").write_bytes(b"of a run")
    with runvitals.init(dir=str(tmp_path / "runs"), entity="vision", project="trainings") as run:
        model = run.log_artifact(str(tmp_path / "model.pt"), name="trained", type="model")
        linked = run.link_artifact(model, "models/classifier", aliases=["fresh"])
        own, restricted = "vision/trainings/picked", "vision/restricted/picked"
        same = [run.link_artifact(model, path) for path in ("picked", "trainings/picked", own)]
        assert {each.qualified_name for each in same} == {f"{own}:v0"}
        assert run.use_artifact("picked").qualified_name == f"{own}:v0"
        for path in ("wandb-registry-models/classifier", "vision/wandb-registry-models/classifier"):
            assert run.link_artifact(model, path).version == linked.version
        new = run.link_model(str(tmp_path / "model.pt"), "net", "another", aliases=["fresh"])
        assert new.qualified_name == "vision/wandb-registry-model/net:v0"
        unlogged = runvitals.Artifact("later", "model")
        assert unlogged.link("model-registry/net").qualified_name == "vision/wandb-registry-model/net:v1"
        for hidden in (restricted, "nowhere/picked"):
            with pytest.raises(UnknownArtifact, match=f"there is no project .*{hidden.split('/')[-2]}'"):
                run.link_artifact(model, hidden)
    assert (linked.qualified_name, linked.aliases) == (
        "vision/wandb-registry-models/classifier:v0",
        ["fresh", "latest"],
    )
    version = models.ok("vera", "GET", "/models/collections/classifier/versions/fresh")
    assert (version["run"], version["author"]) == (run.id, "carol")


@pytest.mark.parametrize("target", ["", "/b/c", "a/b/c/d", "models/"])
def test_invalid_targets(target: str) -> None:
    with pytest.raises(ValueError, match="invalid target"):
        link_target(target, "vision", "digits")
