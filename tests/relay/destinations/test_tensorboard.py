"""The destination `tensorboard:`, read back with TensorBoard's own reader."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from runvitals.relay.batch import EVENT, LIFECYCLE, Batch, LogRow, Note, RunFacts, Samples, WriterFacts
from runvitals.relay.destination import Context
from runvitals.relay.destinations.tensorboard import tfrecords
from runvitals.relay.destinations.tensorboard.destination import TensorBoardDestination
from runvitals.relay.engine.destination_spec import DestinationSpec

T0 = 1_700_000_000_000


class Far:
    """A destination over a folder, as the relay holds it: its state is what JSON keeps."""

    def __init__(self, tmp_path: Path) -> None:
        self.cwd = tmp_path
        self.state: dict[str, Any] = {}
        self.run = RunFacts("r1", "vision")
        self.run.run["name"] = "first try"
        self.seq = 0

    def batch(self, role: str = "monitor", rank: int | None = None) -> Batch:
        suffix = "18c" if role == "monitor" else f"{100 + (rank or 0)}.18c"
        writer = WriterFacts(f"{role}.n1.{suffix}", role, "n1")
        writer.pid, writer.rank, writer.started_ms = 100 + (rank or 0), rank, T0
        self.seq += 1
        return Batch(self.run, writer, self.seq, self.seq)

    def deliver(self, *batches: Batch) -> None:
        destination = TensorBoardDestination("logs", self.context())
        for batch in batches:
            destination.deliver(batch)
        destination.close()

    def context(self) -> Context:
        state = json.loads(json.dumps(self.state))
        self.state = state
        return Context("r1", str(self.cwd), str(self.cwd), state, lambda: None, lambda text: None)

    def samples(self, keys: Sequence[str], rows: Sequence[Sequence[float]], first: int = 0) -> Batch:
        batch = self.batch()
        table = Samples(keys)
        for i, row in enumerate(rows):
            table.add(i, T0 + 1000 * (first + i), struct.pack(f"<{len(row)}d", *row))
        batch.samples.append(table)
        return batch

    def logged(self, step: int, data: Mapping[str, Any], rank: int | None = 0) -> Batch:
        batch = self.batch("train", rank)
        batch.logs.append(LogRow(1, T0 + 1000 * step, step, data))
        return batch

    def noted(self, kind: str, **value: Any) -> Batch:
        batch = self.batch()
        batch.notes.append(Note(1, kind, {"t": T0 + 9000, **value}))
        return batch

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.cwd)) for path in self.cwd.rglob("*tfevents*"))

    def read(self, folder: str) -> Any:
        from tensorboard.backend.event_processing.plugin_event_accumulator import EventAccumulator

        events = EventAccumulator(str(self.cwd / "logs" / folder), size_guidance={"tensors": 0})
        return events.Reload()

    def scalars(self, folder: str, tag: str) -> list[tuple[int, float]]:
        """(step, value), however TensorBoard keeps them."""
        from tensorboard.util.tensor_util import make_ndarray

        return [
            (event.step, float(make_ndarray(event.tensor_proto).item()))
            for event in self.read(folder).Tensors(tag)
        ]


@pytest.fixture
def far(tmp_path: Path) -> Far:
    return Far(tmp_path)


@pytest.mark.parametrize("crc32c", [tfrecords.crc32c, tfrecords._crc32c])
def test_crc32c(crc32c: Callable[[bytes], int]) -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_is_built_in() -> None:
    assert DestinationSpec("tensorboard:logs").factory() is TensorBoardDestination


def test_logged_values_keep_their_tags_and_steps(far: Far) -> None:
    far.deliver(far.logged(3, {"loss": 0.5, "note": "warm *up*"}), far.logged(4, {"loss": 1e40}))
    assert far.scalars("first_try-r1", "loss") == [(3, 0.5), (4, float("inf"))]
    assert far.read("first_try-r1").Tensors("note")[0].tensor_proto.string_val == [b"`warm *up*`"]
    assert far.files()[0].startswith("logs/first_try-r1/events.out.tfevents.1700000000.n1.100")


def test_samples_are_grouped_by_chart_and_counters_are_rates(far: Far) -> None:
    nan = float("nan")
    far.deliver(
        far.samples(["gpu.0.powerWatts", "disk.in"], [(70.0, 0.0), (nan, 5.0)]),
        far.samples(["gpu.0.powerWatts", "disk.in"], [(80.5, 6.0)], first=2),
    )
    system = "first_try-r1/system/n1"
    assert far.scalars(system, "GPU power/gpu.0.powerWatts") == [(0, 70.0), (2, 80.5)]
    assert far.scalars(system, "Disk I/O/disk.readMBps") == [(1, 5.0), (2, 1.0)]
    metadata = far.read(system).SummaryMetadata("GPU power/gpu.0.powerWatts")
    assert "(W)" in metadata.summary_description
    assert metadata.plugin_data.plugin_name == "scalars"


def test_samples_of_several_key_sets_are_in_order(far: Far) -> None:
    """What changes slowly is in few samples; a step that goes back would be taken for a restart."""
    batch = far.samples(["cpu", "disk.in"], [(0.0, 0.0), (2.0, 4.0)])
    batch.samples[0].times_ms, batch.samples[0].seqs = [T0, T0 + 2000], [1, 3]
    between = far.samples(["disk.in"], [(1.0,), (6.0,)], first=1).samples[0]
    between.times_ms, between.seqs = [T0 + 1000, T0 + 3000], [2, 4]
    batch.samples.append(between)
    far.deliver(batch)
    rates = far.scalars("first_try-r1/system/n1", "Disk I/O/disk.readMBps")
    assert rates == [(1, 1.0), (2, 3.0), (3, 2.0)]


def test_each_rank_has_its_own_folder(far: Far) -> None:
    far.deliver(far.logged(1, {"loss": 1.0}, rank=0), far.logged(1, {"loss": 2.0}, rank=3))
    assert far.scalars("first_try-r1/rank3", "loss") == [(1, 2.0)]
    assert far.scalars("first_try-r1", "loss") == [(1, 1.0)]


def test_repeated_batch_is_written_once(far: Far) -> None:
    """The relay was killed after a batch was written and before its position was."""
    far.deliver(far.logged(1, {"loss": 1.0}))
    state = json.dumps(far.state)
    again = far.logged(2, {"loss": 2.0})
    far.deliver(again)
    far.state = json.loads(state)
    far.deliver(again, far.logged(3, {"loss": 3.0}))
    assert far.scalars("first_try-r1", "loss") == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert len(far.files()) == 1


def test_failed_write_changes_nothing(far: Far) -> None:
    far.deliver(far.samples(["cpu", "disk.in"], [(1.0, 0.0)]))
    state = json.dumps(far.state)
    folder = far.cwd / "logs/first_try-r1/system/n1"
    folder.rename(folder.with_name("away"))
    folder.write_text("in the way")
    second = far.samples(["cpu", "disk.in"], [(2.0, 1.0)], first=1)
    destination = TensorBoardDestination("logs", far.context())
    with pytest.raises(OSError, match="n1"):
        destination.deliver(second)
    assert json.dumps(far.state) == state
    folder.unlink()
    folder.with_name("away").rename(folder)
    destination.deliver(second)
    assert [step for step, _ in far.scalars("first_try-r1/system/n1", "Disk I/O/disk.readMBps")] == [1]


def test_configuration_as_table_and_hyperparameters(far: Far) -> None:
    from tensorboard.plugins.hparams import metadata

    far.run.config = {"optimizer": {"lr": 0.1, "name": "adam|<b>"}, "amp": True}
    far.deliver(far.logged(1, {"loss": 1.0}), far.noted(LIFECYCLE, what="end", state="finished"))
    events = far.read("first_try-r1")
    text = events.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert "| `optimizer.lr` | `0.1` |" in text
    assert "`adam\\|<b>`" in text
    content = events.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content
    start = metadata.parse_session_start_info_plugin_data(content)
    assert start.group_name == "first try"
    assert start.hparams["optimizer.lr"].number_value == 0.1
    assert start.hparams["amp"].bool_value is True
    content = events.SummaryMetadata(metadata.SESSION_END_INFO_TAG).plugin_data.content
    assert metadata.parse_session_end_info_plugin_data(content).status == 1


def test_events_are_text_summaries(far: Far) -> None:
    far.deliver(far.noted(EVENT, name="device_lost", level="error", text="gpu 3 <script>"))
    [event] = far.read("first_try-r1/system/n1").Tensors("events/device_lost")
    assert event.step == 9
    assert event.tensor_proto.string_val == [b"`2023-11-14 22:13:29 UTC error: gpu 3 <script>`"]


def test_address_of_a_file_raises(far: Far) -> None:
    (far.cwd / "logs").write_text("")
    with pytest.raises(ValueError, match="logs is not a folder"):
        TensorBoardDestination("logs", far.context())
