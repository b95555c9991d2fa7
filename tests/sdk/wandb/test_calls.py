"""Each argument that W&B's functions have is accepted by ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from io import IOBase
from pathlib import Path
from typing import Any

import numpy
import pytest
import wandb
from wandb.apis import public

import runvitals
from runvitals.readers.servers.wandb.api import Api
from runvitals.readers.servers.wandb.api_run import ApiFile, ApiRun
from runvitals.sdk.artifacts.time_to_live import ArtifactTTL

IMAGE = numpy.zeros((4, 4, 3), numpy.uint8)
FRAMES = numpy.zeros((2, 3, 4, 4), numpy.uint8)
TABLE = runvitals.Table(["a"], [[1]])
VALUES = {
    "classes": [{"id": 1, "name": "cat"}],
    "boxes": {"b": {"box_data": []}},
    "masks": {"m": {"mask_data": IMAGE[..., 0]}},
    "local_path": "file.txt", "uri": "https://example.org/x", "root": ".", "path": "file.txt",
    "glob_str": "*.txt",
    "col_name": "a", "dtype": int, "obj": TABLE, "item": "none.txt", "fn": lambda number, row: {"c": 1},
    "title": "t", "text": "t", "artifact_or_path": "file.txt", "registered_model_name": "m", "keys": [],
    "artifact": None, "target_path": "a/b", "artifact_or_name": "x:latest", "data": {}, "models": [],
}  # fmt: skip
"""Arguments that have no default, or only one that says nothing."""
CLASSES: dict[str, dict[str, Any]] = {
    "Artifact": {"name": "n", "type": "t"},
    "Audio": {"data_or_path": numpy.zeros(9), "sample_rate": 8000},
    "Classes": {"class_set": VALUES["classes"]},
    "Histogram": {"sequence": [1, 2]},
    "Html": {"data": "<b>"},
    "Image": {"data_or_path": IMAGE},
    "JoinedTable": {"table1": TABLE, "table2": TABLE, "join_key": "a"},
    "Molecule": {"data_or_path": "m.pdb"},
    "Object3D": {"data_or_path": IMAGE[0]},
    "Plotly": {"val": 1},
    "Settings": {},
    "Table": {},
    "Video": {"data_or_path": FRAMES},
    "init": {"mode": "disabled", "reinit": True},
    "login": {},
    "setup": {},
    "termlog": {},
    "teardown": {},
}
NOT_OF_A_RUN = {"watch", "unwatch", "status", "sync_dir"}  # these need a model of PyTorch, or are no methods


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("file.txt", "m.pdb", "x"):
        Path(name).write_text("x")
    yield
    runvitals.finish()


def refused(call: Callable[..., Any], theirs: Any, given: Mapping[str, Any]) -> list[str]:
    """The TypeErrors of calls with one more argument of theirs each, by its default."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(theirs).parameters.items()
        if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    }
    needed = {
        name: VALUES.get(name, "x")
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
    }
    errors = []
    for name, parameter in parameters.items():
        default = None if parameter.default is parameter.empty else parameter.default
        more = {} if name in given or name in needed else {name: VALUES.get(name, default)}
        try:
            result = call(**{**needed, **given, **more})
            if isinstance(result, IOBase):
                result.close()
        except TypeError as error:
            errors.append(f"{name}: {error}")
        except Exception:  # noqa: BLE001 - such as that there is no server; the arguments were accepted
            continue
    return errors


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_arguments_of_functions_and_classes(name: str) -> None:
    assert refused(getattr(runvitals, name), getattr(wandb, name), CLASSES[name]) == []


def methods(theirs: type, ours: Any) -> list[str]:
    """The methods that both have."""
    public_names = (name for name, _ in inspect.getmembers(theirs, inspect.isfunction) if name[0] != "_")
    return [name for name in public_names if callable(getattr(ours, name, None))]


def test_arguments_of_methods_of_a_run() -> None:
    run = runvitals.init(mode="offline", dir="data", reinit=True, settings={"quiet": True, "collectors": []})
    names = [name for name in methods(wandb.Run, run) if name not in {*NOT_OF_A_RUN, "finish", "join"}]
    errors = {name: refused(getattr(run, name), getattr(wandb.Run, name), {}) for name in names}
    assert {name: found for name, found in errors.items() if found} == {}
    assert refused(run.finish, wandb.Run.finish, {}) == []


@pytest.mark.parametrize("name", ["Artifact", "Table", "Object3D", "Molecule"])
def test_arguments_of_methods_of_classes(name: str) -> None:
    theirs, ours = getattr(wandb, name), getattr(runvitals, name)
    errors = {}
    for method in methods(theirs, ours):

        def call(method: str = method, **arguments: Any) -> Any:
            made = {"Artifact": lambda: ours("n", "t"), "Table": lambda: ours(["a"], [[1]])}
            return getattr(made.get(name, lambda: ours)(), method)(**arguments)

        given = {"name": "b", "data": [1]} if method == "add_column" else {}
        given = {"name": "a"} if method == "get_column" else given
        errors[method] = refused(call, getattr(theirs, method), given)
    assert {method: found for method, found in errors.items() if found} == {}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [(wandb.Api, Api), (public.Run, ApiRun), (public.File, ApiFile)],
    ids=["Api", "Run", "File"],
)
def test_arguments_of_the_api(theirs: type, ours: type) -> None:
    missing = {}
    for name in methods(theirs, ours):
        wanted = inspect.signature(getattr(theirs, name)).parameters
        missing[name] = [*wanted.keys() - inspect.signature(getattr(ours, name)).parameters.keys()]
    assert {name: arguments for name, arguments in missing.items() if arguments} == {}
    assert len(missing) > 0


def test_a_time_to_live_is_of_a_version_that_is_to_be_logged() -> None:
    from datetime import timedelta

    artifact = runvitals.Artifact("n", "t")
    assert artifact.ttl is ArtifactTTL.INHERIT
    assert "ttl_s" not in artifact.draft([], [])[1]
    for ttl, seconds in ((timedelta(days=2), 172_800), (None, 0)):
        artifact.ttl = ttl
        assert artifact.draft([], [])[1]["ttl_s"] == seconds
    with pytest.raises(TypeError, match="expected a timedelta"):
        artifact.ttl = 3  # type: ignore[assignment]
    with pytest.raises(ValueError, match="at least a second"):
        artifact.ttl = timedelta(0)
    artifact._draft = None
    with pytest.raises(AttributeError, match=r"Artifact.ttl; instead: Client.set_artifact_ttl"):
        artifact.ttl = None


def test_modules_that_only_wandb_has_say_what_to_use() -> None:
    with pytest.raises(ImportError, match=r"wandb\.integration\.openai; instead: init"):
        __import__("runvitals.integration.openai.fine_tuning")
    with pytest.raises(ImportError, match=r"No module named 'runvitals\.integration\.none'"):
        __import__("runvitals.integration.none")
    with pytest.raises(AttributeError, match="PartitionedTable; instead: log one Table"):
        getattr(runvitals.data_types, "PartitionedTable")  # noqa: B009 - the type checker knows that it is none


def test_the_steps_of_a_chain_are_a_page() -> None:
    from runvitals.sdk.data_types.trace_tree import Trace

    root = Trace("answer <b>", kind="CHAIN", start_time_ms=0, end_time_ms=1200, metadata={"n": 1})
    root.add_child(
        Trace("model", kind="LLM", inputs={"q": "2 < 3"}, outputs={"a": True}, status_code="SUCCESS")
    )
    run = runvitals.init(mode="offline", dir="data", reinit=True, settings={"quiet": True, "collectors": []})
    root.log("trace")
    run.finish()
    ended = runvitals.open_run(run.id, "data")
    page = Path(str(ended.path_of(ended.media("trace")[0].items[0]))).read_text()
    assert "<b>answer &lt;b&gt;</b> CHAIN · 1,200 ms" in page
    assert "2 &lt; 3" in page
    assert page.count("<details open>") == 2


def test_images_may_be_named_as_wandb_names_them() -> None:
    with pytest.raises(TypeError, match=r"Image\(\): expected data"):
        runvitals.Image()
    scene = {"points": numpy.zeros((2, 3)), "boxes": numpy.zeros((0, 8)), "vectors": numpy.zeros((0,))}
    assert runvitals.Object3D(scene)._scene == ([[0.0] * 3] * 2, [])
    video = runvitals.Video(FRAMES, "a caption", 8)
    assert (video._caption, video._fps) == ("a caption", 8)
