"""Import of event files, which TensorBoard's own writer and our destination wrote."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.plugins.hparams import summary_v2 as hparams
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.summary.writer.record_writer import RecordWriter

import runvitals
from runvitals.cli import main
from runvitals.journal.frames import START
from runvitals.journal.reader import read_run
from runvitals.readers.importers.histograms import coarse
from runvitals.readers.importers.tensorboard.event_file import EventFile
from runvitals.readers.journals import open_run

T0_S = 1_700_000_000
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301"
    "0100c9fe92ef0000000049454e44ae426082"
)
Value = summary_pb2.Summary.Value


def tensor(tag: str, plugin: str, content: TensorProto) -> Any:
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name=plugin)
    )
    return Value(tag=tag, tensor=content, metadata=metadata)


def write(folder: Path, *events: tuple[int, list[Any]], old: bool = True) -> Path:
    """Write an event file; its path. Each event is a step, and its values."""
    writer = EventFileWriter(str(folder))
    for step, values in events:
        summary = summary_pb2.Summary(value=values)
        writer.add_event(event_pb2.Event(wall_time=T0_S + step, step=step, summary=summary))
    writer.close()
    (path,) = folder.iterdir()
    if old:
        os.utime(path, (T0_S, T0_S))
    return path


def import_all(root: Path, data: Path, *more: str) -> list[str]:
    """Import a folder; the ids of the runs."""
    assert main(["import", f"tensorboard:{root}", "--dir", str(data), *more]) == 0
    return sorted(run for run in os.listdir(data / "runs"))


def test_nested_folders_are_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = tmp_path / "logs"
    write(logs, (0, [Value(tag="loss", simple_value=0.5)]))
    write(logs / "sweep" / "lr=0.1", (0, [Value(tag="loss", simple_value=0.25)]))
    data = tmp_path / "data"
    first, second = import_all(logs, data)
    assert first.startswith("logs-")
    assert second.startswith("sweep-lr_0.1-")
    runs = [open_run(run, directory=str(data)) for run in (first, second)]
    assert [(run.facts.name, run.facts.project, run.state) for run in runs] == [
        ("logs", "logs", "finished"), ("sweep/lr=0.1", "logs", "finished"),
    ]  # fmt: skip
    assert [run.summary["loss"] for run in runs] == [0.5, 0.25]
    capsys.readouterr()
    assert import_all(logs, data) == [first, second]
    assert "2 runs exist already" in capsys.readouterr().out


def test_everything_that_the_writers_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    double = TensorProto(dtype=2, double_val=[0.125])
    content = TensorProto(dtype=1, tensor_content=struct.pack("<f", 2.5))
    bars = TensorProto(dtype=2, tensor_content=struct.pack("<6d", 0, 1, 3, 1, 2, 4))
    old = summary_pb2.HistogramProto(
        min=1, max=3, num=3, bucket_limit=[0.5, 2, 1e308, 1.7e308], bucket=[0, 1, 2, 0]
    )
    texts = TensorProto(dtype=7, string_val=[b"**bold**"])
    pictures = TensorProto(dtype=7, string_val=[b"1", b"1", PNG, PNG])
    path = write(
        tmp_path / "logs",
        (0, [Value(tag="loss", simple_value=0.5)]),
        (0, [tensor("accuracy", "scalars", double)]),
        (1, [Value(tag="loss", simple_value=float("nan")), tensor("rate", "scalars", content)]),
        (1, [tensor("note/text_summary", "text", texts)]),
        (2, [Value(tag="picture", image=summary_pb2.Summary.Image(encoded_image_string=PNG))]),
        (2, [tensor("pictures", "images", pictures), tensor("bars", "histograms", bars)]),
        (2, [Value(tag="weights", histo=old), tensor("curve", "pr_curves", content)]),
    )
    session = hparams.hparams_pb({"lr": 0.1, "depth": 3, "fast": True, "name": "x"}, start_time_secs=T0_S)
    end = plugin_data_pb2.HParamsPluginData(session_end_info=plugin_data_pb2.SessionEndInfo(status=2))
    ended = tensor("_hparams_/session_end_info", "hparams", TensorProto(dtype=1, float_val=[0.0]))
    ended.metadata.plugin_data.content = end.SerializeToString()
    second = write(tmp_path / "more", (3, [*session.value, ended]))
    second.rename(path.with_name(f"{path.name}.2"))
    (run_id,) = import_all(tmp_path / "logs", tmp_path / "data", "--project", "digits")
    assert "not imported: 1 × values of the plugin pr_curves" in capsys.readouterr().out
    run = open_run(run_id, directory=str(tmp_path / "data"))
    assert (run.facts.project, run.state, run.facts.started_ms) == ("digits", "failed", T0_S * 1000)
    assert run.config == {"lr": 0.1, "depth": 3, "fast": True, "name": "x"}
    first, later = run.history()
    assert (first.step, first.time_ms, first.data) == (0, T0_S * 1000, {"loss": 0.5, "accuracy": 0.125})
    assert (later.step, later.data["rate"], later.data["loss"] != later.data["loss"]) == (1, 2.5, True)
    media = {key.key: run.media(key.key)[0] for key in run.media_keys()}
    assert {name: (logged.kind, logged.step, len(logged.items)) for name, logged in media.items()} == {
        "note/text_summary": ("text", 1, 1), "picture": ("image", 2, 1), "pictures": ("image", 2, 2),
        "bars": ("histogram", 2, 1), "weights": ("histogram", 2, 1),
    }  # fmt: skip
    assert media["bars"].items[0]["value"] == {"counts": [3, 4], "edges": [0, 1, 2], "count": 7}
    assert media["weights"].items[0]["value"] == {"counts": [1, 2], "edges": [1, 2, 3], "count": 3}
    assert media["picture"].items[0]["type"] == "image/png"


def test_damage_costs_one_record(tmp_path: Path) -> None:
    events = [(step, [Value(tag="loss", simple_value=step)]) for step in range(4)]
    path = write(tmp_path / "logs", *events)
    data = bytearray(path.read_bytes())
    offset = data.index(b"loss")
    data[offset] ^= 1
    path.write_bytes(bytes(data[:-3]))
    file = EventFile(str(path))
    assert [event.step for event in file.events() if event.values] == [1, 2]
    assert (file.damaged, file.cut) == (1, True)


def test_length_that_lies_ends_the_file(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.host"
    path.write_bytes(struct.pack("<QI", 1 << 60, 0) + b"x" * 100)
    file = EventFile(str(path))
    assert list(file.events()) == []
    assert file.damaged == 1


def test_files_of_our_own_destination(tmp_path: Path) -> None:
    run = runvitals.init(
        project="p", id="abc", dir=str(tmp_path), config={"lr": 0.5}, settings={"quiet": True}
    )
    run.log({"loss": 0.75})
    run.finish()
    assert main(["sync", "abc", "--to", f"tensorboard:{tmp_path}/logs", "--dir", str(tmp_path)]) == 0
    for path in (tmp_path / "logs").rglob("*tfevents*"):
        os.utime(path, (T0_S, T0_S))
    ids = import_all(tmp_path / "logs", tmp_path / "again")
    again = [open_run(run_id, directory=str(tmp_path / "again")) for run_id in ids]
    (trained,) = [run for run in again if "loss" in run.summary]
    assert (trained.summary["loss"], trained.config, trained.state) == (0.75, {"lr": 0.5}, "finished")


def test_run_that_is_still_written_to_has_no_end(tmp_path: Path) -> None:
    write(tmp_path / "logs", (0, [Value(tag="loss", simple_value=1)]), old=False)
    (run_id,) = import_all(tmp_path / "logs", tmp_path / "data")
    assert open_run(run_id, directory=str(tmp_path / "data")).state == "lost"


def test_folder_without_event_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", f"tensorboard:{tmp_path}", "--dir", str(tmp_path / "data")]) == 1
    assert "there is no event file of TensorBoard" in capsys.readouterr().err


def test_many_bars_are_combined() -> None:
    counts, edges = coarse([1.0] * 1000, [float(edge) for edge in range(1001)])
    assert (len(counts), len(edges), sum(counts), edges[0], edges[-1]) == (500, 501, 1000, 0, 1000)


def session(
    path: Path,
    tags: Mapping[str, Iterable[int]],
    began_s: float,
    start_step: int | None = None,
    value: float = 0.0,
) -> None:
    """Append what one process writes: its head, the first step if it announces one, and the values of tags.

    The value of a step is logged a second for each step after the beginning.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [event_pb2.Event(wall_time=began_s, file_version="brain.Event:2")]
    if start_step is not None:
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        events.append(event_pb2.Event(wall_time=began_s, step=start_step, session_log=start))
    first = min(step for steps in tags.values() for step in steps)
    for step, tag in sorted((step, tag) for tag, steps in tags.items() for step in steps):
        summary = summary_pb2.Summary(value=[Value(tag=tag, simple_value=value)])
        events.append(event_pb2.Event(wall_time=began_s + step - first, step=step, summary=summary))
    with path.open("ab") as file:
        for event in events:
            RecordWriter(file).write(event.SerializeToString())
    os.utime(path, (T0_S, T0_S))


def logged(root: Path, data: Path, tag: str = "loss") -> list[tuple[int | None, Any]]:
    """Import a folder of one run; the steps and values of a tag."""
    (run_id,) = import_all(root, data)
    rows = open_run(run_id, directory=str(data)).history()
    return [(row.step, row.data[tag]) for row in rows if tag in row.data]


FIRST, SECOND = f"events.out.tfevents.{T0_S}.node.1", f"events.out.tfevents.{T0_S + 3600}.node.2"
RESUMED = [*((step, 1.0) for step in range(0, 30, 10)), *((step, 2.0) for step in range(30, 80, 10))]


@pytest.mark.parametrize("names", [(FIRST, SECOND), (FIRST, FIRST), ("b.tfevents", "a.tfevents")])
@pytest.mark.parametrize("start_step", [30, None])
def test_rows_before_a_restart_are_replaced(
    tmp_path: Path, names: tuple[str, str], start_step: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second process resumed from the checkpoint of step 30; in files of their own, or one after the
    other in one file."""
    session(tmp_path / "logs" / names[0], {"loss": range(0, 60, 10)}, T0_S, value=1)
    session(tmp_path / "logs" / names[1], {"loss": range(30, 80, 10)}, T0_S + 3600, start_step, value=2)
    assert logged(tmp_path / "logs", tmp_path / "data") == RESUMED
    assert "8 log() rows, 0 files; 3 rows replaced after a restart at step 30" in capsys.readouterr().out
    (run_id,) = os.listdir(tmp_path / "data" / "runs")
    (event,) = open_run(run_id, directory=str(tmp_path / "data")).events
    assert (event.name, event.time_ms) == ("restart", (T0_S + 3600) * 1000)


def test_an_announced_restart_replaces_tags_that_it_does_not_reach_again(tmp_path: Path) -> None:
    session(tmp_path / "logs" / FIRST, {"loss": range(0, 60, 10), "accuracy": (0, 50)}, T0_S)
    session(tmp_path / "logs" / SECOND, {"loss": (35, 45)}, T0_S + 3600, start_step=31)
    assert logged(tmp_path / "logs", tmp_path / "data", "accuracy") == [(0, 0.0)]


def test_a_restart_replaces_no_values_of_another_writer(tmp_path: Path) -> None:
    """A coordinator announces its start; workers write tags of their own, or at the same time."""
    logs = tmp_path / "logs"
    session(logs / FIRST, {"worker/loss": range(0, 50, 10), "loss": range(0, 50, 10)}, T0_S)
    session(logs / SECOND, {"coordinator/queue": (0, 40)}, T0_S + 3600, start_step=0)
    session(logs / "another.tfevents", {"loss": range(0, 50, 10)}, T0_S + 5, start_step=0)
    data = tmp_path / "data"
    assert len(logged(logs, data)) == 10
    (run_id,) = os.listdir(data / "runs")
    rows = open_run(run_id, directory=str(data)).history()
    assert len([row for row in rows if "worker/loss" in row.data]) == 5


def test_each_restart_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs" / FIRST
    for number, steps in enumerate((range(6), range(4, 9), range(2, 10))):
        session(path, {"loss": steps, "accuracy": steps}, T0_S + 100 * number, steps[0], value=number)
    assert logged(tmp_path / "logs", tmp_path / "data") == [
        *((step, 0.0) for step in range(2)), *((step, 2.0) for step in range(2, 10)),
    ]  # fmt: skip
    out = capsys.readouterr().out
    assert "2 rows replaced after a restart at step 4; 7 rows replaced after a restart at step 2" in out


def test_steps_that_go_back_without_a_restart_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "logs", *((step, [Value(tag="loss", simple_value=step)]) for step in (0, 2, 1, 2)))
    assert [step for step, _ in logged(tmp_path / "logs", tmp_path / "data")] == [0, 1, 2, 2]


def test_folders_with_equal_names_are_different_runs(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for folder in ("a", "b", "a"):
        logs = tmp_path / folder / "run1"
        if not logs.exists():
            session(logs / FIRST, {"loss": range(3)}, T0_S)
        ids = import_all(logs, data)
    assert len(ids) == 2


def test_team_that_gets_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "logs", (0, [Value(tag="loss", simple_value=1)]))
    (run_id,) = import_all(tmp_path / "logs", tmp_path / "data", "--entity", "vision")
    starts = [record for record in read_run(str(tmp_path / "data" / "runs" / run_id)) if record.type == START]
    assert {record.value["entity"] for record in starts} == {"vision"}
    assert main(["import", f"tensorboard:{tmp_path}/logs", "--entity", "a/b"]) == 1
    assert "invalid setting entity = 'a/b' (--entity)" in capsys.readouterr().err
