"""Artifacts that a run logs and uses without a server: recorded in its journal, read from there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import runvitals
from runvitals.model.artifacts import UnknownArtifact
from runvitals.readers.journals.artifacts import LocalArtifacts
from runvitals.sdk.artifacts.artifact import ArtifactNotLogged
from runvitals.sdk.artifacts.local_paths import folder_of
from runvitals.sdk.run import Run
from tests.server.artifacts.test_lineage import named
from tests.server.client import Client


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    with runvitals.init(project="digits", dir=str(folder / "data"), mode="offline") as run:
        yield run


def logged(run: Run, name: str, *aliases: str, **files: str) -> runvitals.Artifact:
    artifact = runvitals.Artifact(name, "dataset")
    for path, content in files.items():
        with artifact.new_file(f"{path}.txt") as file:
            file.write(content)
    return run.log_artifact(artifact, aliases=list(aliases))


def test_versions_and_aliases_of_this_machine(run: Run) -> None:
    assert logged(run, "mnist", "best", a="one").wait().version == "v0"
    assert logged(run, "mnist", a="two").version == "v1"
    again = logged(run, "mnist", "first", a="one")
    assert (again.version, again.aliases) == ("v0", ["best", "first"])
    assert run.use_artifact("mnist").version == "v1"
    assert run.use_artifact("digits/mnist:first").version == "v0"
    with pytest.raises(UnknownArtifact, match="mnist:v7"):
        run.use_artifact("mnist:v7")


def test_the_lineage_of_this_machine(run: Run, folder: Path) -> None:
    logged(run, "mnist", a="one").wait()
    with runvitals.init(project="digits", dir=str(folder / "data"), mode="offline", reinit=True) as user:
        user.use_artifact("mnist")
        logged(user, "model", b="weights").wait()
    client = Client(folder / "data")
    starts = (f"runs/{run.id}", f"runs/{user.id}", "projects/digits/artifacts/mnist/latest")
    found = [named(client.ask(f"{start}/lineage", depth=2)) for start in starts]
    assert found == [
        {run.id: 0, "mnist:v0": 1, user.id: 2},
        {user.id: 0, "mnist:v0": -1, run.id: -2, "model:v0": 1},
        {"mnist:v0": 0, run.id: -1, user.id: 1, "model:v0": 2},
    ]
    assert client.ask(f"runs/{run.id}/lineage", depth=1)["nodes"][1]["more_after"] is True
    assert client.get("/api/v1/runs/none/lineage").status_code == 404


def test_files_folders_references_and_media(run: Run, folder: Path) -> None:
    data = folder / "data of mine"
    (data / "sub").mkdir(parents=True)
    (data / "a.txt").write_text("a")
    (data / "sub" / "b.txt").write_text("b")
    artifact = runvitals.Artifact("all", "dataset", "what it is", {"rows": 2})
    artifact.add_dir(data, name="in")
    artifact.add_file(str(data / "a.txt"), name="copy.txt")
    artifact.add_reference("s3://bucket/key.bin")
    artifact.add_reference((data / "a.txt").as_uri(), name="near.txt")
    artifact.add(runvitals.Table(columns=["x"], data=[[1]]), "table")
    artifact.remove("copy.txt")
    assert artifact.file_count == 5
    run.log_artifact(artifact)
    paths = {file.path: file.ref for file in artifact.files()}
    assert paths == {
        "in/a.txt": None,
        "in/sub/b.txt": None,
        "key.bin": "s3://bucket/key.bin",
        "near.txt": f"file://{data}/a.txt",
        "table.json": None,
    }
    root = artifact.download()
    assert root == os.path.join("artifacts", "all:v0")
    assert Path(root, "in", "sub", "b.txt").read_text() == "b"
    assert json.loads(Path(root, "table.json").read_text())["columns"] == ["x"]
    assert artifact.get_entry("key.bin").ref_target() == "s3://bucket/key.bin"
    with pytest.raises(KeyError, match="none"):
        artifact.get_path("none")
    assert (artifact.metadata, artifact.description) == ({"rows": 2}, "what it is")


def test_a_download_stays_in_its_folder(run: Run, folder: Path) -> None:
    artifact = logged(run, "deep", **{"out/x": "x", "sub/a": "a"})
    target, outside = folder / "target", folder / "outside"
    target.mkdir()
    outside.mkdir()
    (target / "out").symlink_to(outside)
    with pytest.raises(ValueError, match=r"is a link to .*outside"):
        artifact.download(str(target))
    assert list(outside.iterdir()) == []
    (target / "out").unlink()
    (target / "out").mkdir()
    (outside / "kept.txt").write_text("kept")
    (target / "out" / "x.txt").symlink_to(outside / "kept.txt")
    artifact.download(str(target))
    assert ((outside / "kept.txt").read_text(), (target / "out" / "x.txt").read_text()) == ("kept", "x")
    artifact.download(str(target))  # again, over the files that are there


def test_two_files_that_would_be_one_are_an_error(run: Run, folder: Path) -> None:
    """As `d` and `D` are on disks that do not distinguish them; here by a link."""
    artifact = logged(run, "cases", **{"D/x": "large", "d/x": "small"})
    target = folder / "target"
    (target / "d").mkdir(parents=True)
    (target / "D").symlink_to("d")
    with pytest.raises(ValueError, match=r"'D/x.txt' and 'd/x.txt' are the same file"):
        artifact.download(str(target))


def test_which_runs_made_and_used_it(run: Run, folder: Path) -> None:
    artifact = logged(run, "model", a="x")
    run.finish()
    with runvitals.init(project="digits", dir=str(folder / "data"), mode="offline") as second:
        used = second.use_artifact("model:latest")
        assert used.logged_by().id == run.id
        assert [user.id for user in used.used_by()] == [second.id]
    assert artifact.qualified_name == "digits/model:v0"


def test_a_path_is_logged_as_an_artifact(run: Run, folder: Path) -> None:
    (folder / "model.pt").write_bytes(b"weights")
    artifact = run.log_artifact(folder / "model.pt", name="classifier", type="model")
    assert (artifact.type, Path(artifact.file()).read_bytes()) == ("model", b"weights")
    assert run.log_artifact(folder / "model.pt").collection_name == f"run-{run.id}-model.pt"


def test_what_cannot_be_logged(run: Run, folder: Path) -> None:
    with pytest.raises(ValueError, match="is not a file"):
        runvitals.Artifact("x", "t").add_file("none.txt")
    with pytest.raises(ValueError, match="invalid name of an artifact"):
        runvitals.Artifact("a/b", "t")
    with pytest.raises(ValueError, match="invalid path"):
        runvitals.Artifact("x", "t").add_reference("s3://b/k", name="../up")
    with pytest.raises(ValueError, match="named by the server"):
        run.log_artifact(runvitals.Artifact("x", "t"), aliases=["v3"])
    artifact = logged(run, "once", a="x")
    with pytest.raises(ValueError, match="was logged"):
        artifact.add_reference("s3://b/k")
    with pytest.raises(ArtifactNotLogged, match="was not logged"):
        runvitals.Artifact("x", "t").wait()
    with pytest.raises(ValueError, match="has the type 'dataset'"):
        run.use_artifact("once", type="model")


def test_a_file_that_is_gone_stops_no_training(
    run: Run, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "gone.txt"
    path.write_text("x")
    artifact = runvitals.Artifact("gone", "t")
    artifact.add_file(str(path))
    path.unlink()
    run.log_artifact(artifact)
    assert "an artifact that cannot be recorded" in capsys.readouterr().err
    assert LocalArtifacts(str(folder / "data")).versions(name="gone") == []


def test_an_artifact_of_many_files_is_recorded_in_parts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runvitals.sdk.artifacts.draft._FILES_PER_PART", 3)
    artifact = runvitals.Artifact("many", "dataset")
    for number in range(8):
        artifact.add_reference(f"s3://bucket/{number}")
    run.log_artifact(artifact)
    assert [file.path for file in artifact.files()] == [str(number) for number in range(8)]


def test_artifacts_are_no_logged_media(run: Run) -> None:
    logged(run, "mnist", a="one")
    run.log({"mnist": runvitals.Html("<p>x</p>")})
    run.finish()
    opened = runvitals.open_run(run.id, os.path.dirname(os.path.dirname(run.dir)))
    assert [(key.key, key.kind, key.count) for key in opened.media_keys()] == [("mnist", "html", 1)]
    assert len(list(opened.media("mnist"))) == 1


def test_a_path_that_leads_out_of_the_folder_is_not_written(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = logged(run, "hostile", a="x")
    entry = artifact.files()[0].entry
    hostile = [replace(entry, path="../../up.txt")]
    monkeypatch.setattr("runvitals.readers.journals.artifacts.LoggedArtifact.entries", lambda self: hostile)
    with pytest.raises(ValueError, match="invalid path"):
        artifact.download()


@pytest.mark.parametrize(
    ("name", "version"), [("../up", 1), ("/etc/cron.d/x", 1), ("a\\b", 1), ("", 1), ("a", "1/../..")]
)
def test_no_name_from_a_server_leads_a_download_elsewhere(name: str, version: int | str) -> None:
    with pytest.raises(ValueError, match="name the folder of the download"):
        folder_of(name, version)  # type: ignore[arg-type]
