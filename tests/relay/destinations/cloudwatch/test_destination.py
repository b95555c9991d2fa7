"""The relay's destination `cloudwatch:`, against moto's server."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from runvitals.relay.batch import Batch, LogRow, RunFacts, Samples, WriterFacts
from runvitals.relay.destination import Context, Rejected, Retry
from runvitals.relay.destinations import BUILT_IN
from runvitals.relay.destinations.cloudwatch.destination import CloudWatchDestination
from runvitals.relay.destinations.cloudwatch.split_request import RequestRejected, ServiceUnavailable
from tests.relay.destinations.cloudwatch.conftest import FakeCloud
from tests.relay.journals import Journal, Sender

MINUTE_S = int(time.time()) // 60 * 60


def context(tmp_path: Path, state: dict[str, Any] | None = None) -> Context:
    return Context(
        "r1", str(tmp_path), str(tmp_path), {} if state is None else state, lambda: None, lambda text: None
    )


def batch(
    keys: Sequence[str], rows: Sequence[Sequence[float]], first_seq: int = 1, rank: int | None = None
) -> Batch:
    """A minute of samples, five seconds apart."""
    run = RunFacts("r1", "vision")
    writer = WriterFacts("monitor.n1.18c", "monitor" if rank is None else "train", "n1")
    writer.rank = rank
    new_batch = Batch(run, writer, first_seq, first_seq + len(rows) - 1)
    table = Samples(keys)
    for i, row in enumerate(rows):
        table.add(first_seq + i, (MINUTE_S + 5 * i) * 1000, struct.pack(f"<{len(row)}d", *row))
    new_batch.samples.append(table)
    return new_batch


def test_is_built_in() -> None:
    assert (
        BUILT_IN["cloudwatch"] == "runvitals.relay.destinations.cloudwatch.destination:CloudWatchDestination"
    )


def test_sends_a_minute_of_samples_in_cloudwatch_units(cloud: FakeCloud, tmp_path: Path) -> None:
    destination = CloudWatchDestination("us-west-2/Training?include=*", context(tmp_path))
    destination.deliver(batch(["cpu", "memory.usedMB"], [(float(i % 2), 3.0) for i in range(12)]))
    destination.close()
    (cpu,) = cloud.statistics("Training", "cpu", MINUTE_S, "Percent")
    assert (cpu["SampleCount"], cpu["Average"]) == (12.0, 0.5)
    (memory,) = cloud.statistics("Training", "memory.usedMB", MINUTE_S, "Bytes")
    assert memory["Average"] == 3 * 2**20
    assert cloud.dimensions("Training") == {(("Run", "r1"), ("Host", "n1"))}


def test_sends_included_metrics_except_excluded_ones(cloud: FakeCloud, tmp_path: Path) -> None:
    address = "us-west-2?include=gpu.*&include=cpu&exclude=*.temp&dimension=Team=a"
    destination = CloudWatchDestination(address, context(tmp_path))
    destination.deliver(batch(["cpu", "cpu.user", "gpu.0.temp", "gpu.0.powerWatts"], [(1, 2, 3, 4)]))
    destination.close()
    assert cloud.names("runvitals") == {"cpu", "gpu.0.powerWatts"}
    assert cloud.dimensions("runvitals") == {(("Team", "a"),)}


def test_computes_rates_across_batches_and_restarts(cloud: FakeCloud, tmp_path: Path) -> None:
    state: dict[str, Any] = {}
    first = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path, state))
    first.deliver(batch(["disk.in"], [(0.0,)]))
    first.close()
    later = batch(["disk.in"], [(0.0,), (50.0,)], first_seq=2)
    second = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path, state))
    second.deliver(later)
    second.close()
    assert cloud.names("T") == {"disk.readMBps"}
    (point,) = cloud.statistics("T", "disk.readMBps", MINUTE_S, "Bytes/Second")
    assert point["Maximum"] == 10 * 2**20  # 50 MiB in 5 s


def test_skips_gaps(cloud: FakeCloud, tmp_path: Path) -> None:
    destination = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path))
    destination.deliver(batch(["cpu"], [(1.0,), (float("nan"),), (2.0,)]))
    destination.close()
    (cpu,) = cloud.statistics("T", "cpu", MINUTE_S, "Percent")
    assert cpu["SampleCount"] == 2.0


def test_sends_logged_values_with_their_rank(cloud: FakeCloud, tmp_path: Path) -> None:
    destination = CloudWatchDestination("us-west-2/T?include=loss&dimension=Rank", context(tmp_path))
    logged = batch([], [], rank=3)
    logged.logs.append(LogRow(1, MINUTE_S * 1000, 0, {"loss": 0.25, "text": "x"}))
    destination.deliver(logged)
    destination.close()
    assert cloud.names("T") == {"loss"}
    assert cloud.dimensions("T") == {(("Rank", "3"),)}


def test_resumes_an_interrupted_batch(
    cloud: FakeCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1,500 metrics take two requests; the network fails before the second."""
    state: dict[str, Any] = {}
    keys = [f"custom.{i}" for i in range(1500)]
    destination = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path, state))
    put, calls = destination._client.put, []

    def failing(request: Any) -> None:
        calls.append(len(request))
        if len(calls) == 2:
            raise ConnectionResetError
        put(request)

    monkeypatch.setattr(destination._client, "put", failing)
    with pytest.raises(OSError):  # noqa: PT011 - the relay retries after any of them
        destination.deliver(batch(keys, [[1.0] * 1500]))
    destination.close()
    again = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path, state))
    again.deliver(batch(keys, [[1.0] * 1500]))
    again.close()
    assert calls == [1000, 500]
    for name in ("custom.0", "custom.1499"):
        (point,) = cloud.statistics("T", name, MINUTE_S, "None")
        assert point["SampleCount"] == 1.0


def test_retries_without_network(cloud: FakeCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    destination = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path))
    with pytest.raises(Retry, match="connect"):
        destination.deliver(batch(["cpu"], [(1.0,)]))
    destination.close()


def test_rejects_data_older_than_two_weeks(cloud: FakeCloud, tmp_path: Path) -> None:
    destination = CloudWatchDestination(
        "us-west-2/T?include=*", context(tmp_path), clock=lambda: MINUTE_S + 30 * 86_400
    )
    with pytest.raises(Rejected, match="older than two weeks"):
        destination.deliver(batch(["cpu"], [(1.0,)]))
    destination.close()
    assert cloud.names("T") == set()


def test_sends_what_is_timely_beside_what_is_not(cloud: FakeCloud, tmp_path: Path) -> None:
    """A replay of a machine whose clock was wrong; what is refused is counted once."""
    destination = CloudWatchDestination(
        "us-west-2/T?include=*", context(tmp_path), clock=lambda: float(MINUTE_S)
    )
    day_s = 86_400
    times_s = (0, -13 * day_s - 23 * 3600, -14 * day_s - 60, 7140, 7260, 903 - MINUTE_S, -1)
    replayed = batch(["cpu"], [])
    replayed.last_seq = len(times_s)
    table = Samples(["cpu"])
    for seq, time_s in enumerate(times_s, 1):
        table.add(seq, (MINUTE_S + time_s) * 1000, struct.pack("<d", 1.0))
    replayed.samples.append(table)
    with pytest.raises(Rejected) as rejected:
        destination.deliver(replayed)
    destination.close()
    assert rejected.value.points == 3
    assert str(rejected.value) == (
        "2 readings: older than two weeks, which CloudWatch does not accept; "
        "1 readings: more than two hours in the future, which CloudWatch does not accept"
    )
    for time_s in times_s:
        start_s = (MINUTE_S + time_s) // 60 * 60
        sent = time_s in (0, -13 * day_s - 23 * 3600, 7140, -1)
        points = cloud.statistics("T", "cpu", start_s, "Percent")
        assert bool([point for point in points if point["Timestamp"].timestamp() == start_s]) == sent


def test_counts_what_was_refused_before_an_interruption(
    cloud: FakeCloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process continues with the second of two requests."""
    state: dict[str, Any] = {}
    keys = [f"custom.{i}" for i in range(1500)]
    destination = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path, state))
    put = destination._client.put

    def refusing(request: Any) -> None:
        if any(datum.series.name == "custom.1200" for datum in request):
            raise ServiceUnavailable("Throttling")
        if any(datum.series.name == "custom.7" for datum in request):
            raise RequestRejected("InvalidParameterValue")
        put(request)

    monkeypatch.setattr(destination._client, "put", refusing)
    with pytest.raises(Retry, match="Throttling"):
        destination.deliver(batch(keys, [[1.0] * 1500]))
    destination.close()
    again = CloudWatchDestination("us-west-2/T?include=*", context(tmp_path, state))
    with pytest.raises(Rejected, match=r"1 readings: custom\.7: InvalidParameterValue") as rejected:
        again.deliver(batch(keys, [[1.0] * 1500]))
    again.close()
    assert rejected.value.points == 1
    (point,) = cloud.statistics("T", "custom.6", MINUTE_S, "None")
    assert point["SampleCount"] == 1.0


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("us-west-2/T", "missing option 'include'"),
        ("us-west-2/AWS/EC2?include=*", "AWS/ is reserved"),
        ("us-west-2/T?include=*&resolution=5", "expected 60 or 1"),
        ("us-west-2/T?include=*&dimension=Colour", "write Colour=VALUE"),
        ("us-west-2/T?includes=*", "unknown option 'includes'; expected one of include"),
    ],
)
def test_invalid_addresses(address: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        CloudWatchDestination(address, context(tmp_path))


def test_one_refused_reading_does_not_count_the_others_as_dropped(cloud: FakeCloud, journal: Journal) -> None:
    journal.monitor.sample(1000, {"cpu": 1.0})  # 1970: the clock was not set yet
    journal.sample(1, cpu=2.0)
    sender = Sender(journal.folder, "cloudwatch:us-west-2/T?include=*")
    sender.send()
    counts = sender.cursor.counts
    sender.kill()
    assert cloud.names("T") == {"cpu"}
    assert (counts["rejected"], counts["dropped"], counts["points"]) == (1, 1, 1)
    assert "1 readings: older than two weeks" in sender.cursor.rejection
