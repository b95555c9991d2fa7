"""Remote write, read by Google's protobuf, and by a real Prometheus and a real VictoriaMetrics."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import cramjam
import pytest

from runvitals.journal import frames
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Retry
from runvitals.relay.destinations.prometheus import snappy
from runvitals.relay.timeseries import push_destination
from tests.relay.destinations.prometheus import messages
from tests.relay.journals import RUN, Journal, Sender
from tests.relay.real_servers import Prometheus, VictoriaMetrics
from tests.relay.recording_server import RecordingServer, Request

CPU = "runvitals_process_cpu_utilization_ratio"
SENT = "runvitals_network_interface_sent_bytes_total"


@pytest.fixture
def sender(journal: Journal, target: RecordingServer) -> Iterator[Sender]:
    sender = Sender(journal.folder, f"remote_write:{target.url}/push?tenant=a")
    yield sender
    sender.kill()


@pytest.fixture
def sender2(journal: Journal, target: RecordingServer) -> Iterator[Sender]:
    target.default_headers = {"X-Prometheus-Remote-Write-Samples-Written": "1"}
    sender = Sender(journal.folder, f"remote_write:{target.url}#version=2")
    yield sender
    sender.kill()


Points = list[tuple[int, float]]


def read1(requests: list[Request]) -> dict[str, Points]:
    """Name and key labels -> points, of requests of version 1."""
    found: dict[str, Points] = {}
    for request in requests:
        message = messages.WriteRequest.FromString(bytes(cramjam.snappy.decompress_raw(request.body)))
        for series in message.timeseries:
            names = [label.name for label in series.labels]
            assert names == sorted(names)
            labels = {label.name: label.value for label in series.labels}
            points = found.setdefault(named(labels), [])
            points += [(sample.timestamp, sample.value) for sample in series.samples]
    return found


def named(labels: dict[str, str]) -> str:
    return labels["__name__"] + (f"/{labels['key']}" if "key" in labels else "")


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def test_samples_of_a_run(journal: Journal, target: RecordingServer, sender: Sender) -> None:
    for second in range(3):
        journal.sample(second, **{"cpu": 10.0 * second, "network.eth0.sent": 5.0 * second})
    journal.log(3, 7, loss=0.5, note="not a number", train={"acc": 1})
    sender.send()
    points = read1(target.requests)
    t0 = journal.t0
    assert points[CPU] == [(t0, 0.0), (t0 + 1000, 0.1), (t0 + 2000, 0.2)]
    assert points[SENT] == [(t0, 0.0), (t0 + 1000, 5.0), (t0 + 2000, 10.0)]
    assert points["runvitals_log/loss"] == [(t0 + 3000, 0.5)]
    assert points["runvitals_log/train.acc"] == [(t0 + 3000, 1.0)]
    assert points["runvitals_log_step"] == [(t0 + 3000, 7.0)]
    request = target.requests[0]
    assert request.path == "/push?tenant=a"
    assert request.headers["content-type"] == "application/x-protobuf"
    assert request.headers["content-encoding"] == "snappy"
    assert request.headers["x-prometheus-remote-write-version"] == "0.1.0"
    assert request.headers["user-agent"].startswith("runvitals/")


def test_metadata_is_sent_once(journal: Journal, target: RecordingServer, sender: Sender) -> None:
    for second in range(2):
        journal.sample(second, **{"network.eth0.sent": 5.0})
        sender.send()
    first, second_one = (
        messages.WriteRequest.FromString(bytes(cramjam.snappy.decompress_raw(request.body)))
        for request in target.requests
    )
    (about,) = first.metadata
    assert (about.metric_family_name, about.type, about.unit) == (SENT, 1, "bytes")
    assert about.help
    assert not second_one.metadata


def test_gaps_and_end_are_staleness_markers(
    journal: Journal, target: RecordingServer, sender: Sender
) -> None:
    nan = float("nan")
    for second, value in enumerate([1.0, nan, nan, 2.0]):
        journal.sample(second, cpu=value, memory_percent=50.0)
    journal.log(2, 0, loss=nan)  # is what the program has logged, and no gap
    journal.end()
    sender.send()
    points = read1(target.requests)
    t0 = journal.t0
    assert [time for time, _ in points[CPU]] == [t0, t0 + 1000, t0 + 3000, t0 + 9000]
    assert [bits(value) == 0x7FF0000000000002 for _, value in points[CPU]] == [False, True, False, True]
    assert bits(points["runvitals_memory_utilization_ratio"][-1][1]) == 0x7FF0000000000002
    ((_, loss),) = points["runvitals_log/loss"]
    assert isnan(loss)
    assert bits(loss) != 0x7FF0000000000002


def test_times_ascend_across_key_sets(journal: Journal, target: RecordingServer, sender: Sender) -> None:
    for second in (0, 1, 3, 2, 2):  # the clock was set back
        slow = {"memory_percent": 50.0} if second % 2 else {}
        journal.sample(second, cpu=float(second), **slow)
    for step in range(3):
        journal.log(5, step, loss=float(step))
    sender.send()
    found = read1(target.requests)
    times = {name: [(time - journal.t0) for time, _ in points] for name, points in found.items()}
    assert times[CPU] == [0, 1000, 2000, 3000]
    assert times["runvitals_memory_utilization_ratio"] == [1000, 3000]
    assert times["runvitals_log/loss"] == [5000, 5001, 5002]


def test_version_2_request(journal: Journal, target: RecordingServer, sender2: Sender) -> None:
    journal.sample(0, **{"cpu": 50.0, "network.eth0.sent": 5.0})
    sender2.send()
    (request,) = target.requests
    assert request.path == "/api/v1/write"
    assert request.headers["content-type"] == "application/x-protobuf;proto=io.prometheus.write.v2.Request"
    assert request.headers["x-prometheus-remote-write-version"] == "2.0.0"
    message = messages.Request.FromString(bytes(cramjam.snappy.decompress_raw(request.body)))
    symbols = list(message.symbols)
    assert symbols[0] == ""
    assert len(symbols) == len(set(symbols))
    found: dict[str, Any] = {}
    for series in message.timeseries:
        words = [symbols[ref] for ref in series.labels_refs]
        names = words[::2]
        assert names == sorted(names)
        found[dict(zip(names, words[1::2], strict=True))["__name__"]] = series
    cpu, sent = found[CPU], found[SENT]
    assert [(sample.timestamp, sample.value, sample.start_timestamp) for sample in cpu.samples] == [
        (journal.t0, 0.5, 0)
    ]
    assert (cpu.metadata.type, symbols[cpu.metadata.unit_ref]) == (2, "ratio")
    assert sent.metadata.type == 1
    assert symbols[sent.metadata.help_ref]
    assert sent.samples[0].start_timestamp > 0


@pytest.mark.parametrize("body", [(415, {}, b""), (200, {}, b"")])
def test_falls_back_to_version_1(
    journal: Journal, target: RecordingServer, sender2: Sender, body: Any
) -> None:
    target.default_headers = {}
    target.responses.append(body)
    journal.sample(0, cpu=50.0)
    sender2.send()
    assert read1(target.requests[1:])[CPU] == [(journal.t0, 0.5)]
    journal.sample(1, cpu=50.0)
    sender2.send()
    assert len(target.requests) == 3


def test_retries_after_503_without_duplicates(
    journal: Journal, target: RecordingServer, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_destination, "MAX_SAMPLES", 2)
    for second in range(6):
        journal.sample(second, cpu=float(second))
    target.responses += [(200, {}, b""), (503, {"Retry-After": "7"}, b"busy")]
    with pytest.raises(Retry, match="503 busy") as raised:
        sender.send()
    assert raised.value.after_s == 7.0
    sender.send()
    del target.requests[1]  # the one that was refused
    assert [time - journal.t0 for time, _ in read1(target.requests)[CPU]] == [
        1000 * second for second in range(6)
    ]


def test_counts_and_skips_a_rejected_request(
    journal: Journal, target: RecordingServer, sender: Sender
) -> None:
    target.responses.append((400, {}, b"out of order sample"))
    journal.sample(0, cpu=1.0)
    sender.send()
    assert sender.cursor.rejection == "400 out of order sample"
    assert sender.cursor.counts["rejected"] == 1
    journal.sample(1, cpu=1.0)
    sender.send()
    assert sender.cursor.counts["samples"] == 1


def test_splits_a_request_that_is_too_large(
    journal: Journal, target: RecordingServer, sender: Sender
) -> None:
    target.responses.append((413, {}, b""))
    journal.sample(0, cpu=1.0, memory_percent=2.0)
    sender.send()
    assert len(target.requests) == 3
    assert sender.cursor.counts["rejected"] == 0


def test_restarted_monitor_is_delivered_after_its_predecessor(
    journal: Journal, target: RecordingServer, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runvitals.journal.writer import JournalWriter
    from runvitals.relay.engine import batch_reader

    monkeypatch.setattr(batch_reader, "MAX_BATCH_RECORDS", 2)
    for second in range(6):
        journal.sample(second, cpu=float(second))
    about = {"run": RUN, "host": "node1", "role": "monitor", "pid": 8, "interval_s": 1.0}
    second_life = JournalWriter(journal.folder, "monitor.node1.2", about)
    for second in range(6, 9):
        second_life.sample(journal.t0 + 1000 * second, {"cpu": float(second)})
    second_life.close()
    sender.send()
    times = [time for time, _ in read1(target.requests)[CPU]]
    assert times == sorted(times)
    assert len(times) == 9


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"REMOTE_WRITE_TOKEN": "s3cret"}, {"authorization": "Bearer s3cret"}),
        (
            {"REMOTE_WRITE_USER": "me", "REMOTE_WRITE_PASSWORD": "s3cret"},
            {"authorization": "Basic bWU6czNjcmV0"},
        ),
        ({"REMOTE_WRITE_HEADERS": "X-Scope-OrgID=s3cret%20a"}, {"x-scope-orgid": "s3cret a"}),
    ],
)
def test_credentials_from_the_environment(
    journal: Journal,
    target: RecordingServer,
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    expected: dict[str, str],
) -> None:
    for name, text in environ.items():
        monkeypatch.setenv(name, text)
    sender = Sender(journal.folder, f"remote_write:{target.url}")
    journal.sample(0, cpu=1.0)
    sender.send()
    sender.kill()
    assert expected.items() <= target.requests[0].headers.items()
    assert not any(
        b"s3cret" in file.read_bytes() for file in Path(journal.folder).rglob("*") if file.is_file()
    )


def test_credentials_from_a_file(journal: Journal, target: RecordingServer, tmp_path: Path) -> None:
    (tmp_path / "headers").write_text("# of the team\nAuthorization: Bearer s3cret\n")
    sender = Sender(journal.folder, f"remote_write:{target.url}#headers={tmp_path}/headers")
    journal.sample(0, cpu=1.0)
    target.responses.append((401, {}, b""))
    with pytest.raises(Retry, match="REMOTE_WRITE_TOKEN"):
        sender.send()
    sender.kill()
    assert target.requests[0].headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize("line", ["Authorization", "a b: c", "X: caf\u00e9"])
def test_invalid_headers_are_neither_sent_nor_shown(
    journal: Journal, target: RecordingServer, tmp_path: Path, line: str
) -> None:
    (tmp_path / "headers").write_text(line)
    sender = Sender(journal.folder, f"remote_write:{target.url}#headers={tmp_path}/headers")
    journal.sample(0, cpu=1.0)
    with pytest.raises(ValueError, match="contains an invalid header") as raised:
        sender.send()
    sender.kill()
    assert line not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("ftp://host", "invalid server URL"),
        ("http://me:secret@host", "password"),
        ("http://host#version=3", "version='3'"),
        ("http://host#colour=red", "unknown option 'colour'"),
    ],
)
def test_invalid_addresses(journal: Journal, address: str, text: str) -> None:
    sender = Sender(journal.folder, f"remote_write:{address}")
    with pytest.raises(ValueError, match=text):
        sender.send()
    sender.kill()


@pytest.mark.parametrize("size", [0, 1, 59, 60, 61, 70_000])
def test_snappy_without_a_package(size: int) -> None:
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert bytes(cramjam.snappy.decompress_raw(snappy.encode_literally(data))) == data
    assert bytes(cramjam.snappy.decompress_raw(snappy.compress(data))) == data


def hour(journal: Journal) -> None:
    """Some samples of the last minutes, two of one `log()`, and the end."""
    for second in range(50):
        journal.sample(second, **{"cpu": second + 0.1, "network.eth0.sent": 100.0 * second})
    journal.log(50, 1, loss=0.1)
    journal.monitor.json(
        frames.LIFECYCLE, {"t": journal.t0 + 51_000, "what": "end", "state": "finished", "exit_code": 0}
    )


def test_prometheus_accepts_it(journal: Journal, tmp_path: Path) -> None:
    hour(journal)
    with Prometheus(tmp_path / "prometheus") as prometheus:
        sender = Sender(journal.folder, f"remote_write:{prometheus.url}#version=2")  # 2.42 knows 1.0 only
        destination = sender.delivery.open()
        deliver = destination.deliver

        def lose_the_answer(batch: Batch) -> None:
            deliver(batch)
            destination.deliver = deliver  # type: ignore[method-assign]
            raise ConnectionResetError

        destination.deliver = lose_the_answer  # type: ignore[method-assign]
        with pytest.raises(ConnectionResetError):
            sender.send()
        sender.send()
        sender.kill()
        assert (sender.cursor.rejection, sender.cursor.counts["samples"]) == ("", 50)
        ((_, points),) = (
            (series["metric"], series["values"])
            for series in prometheus.ask("query", query=f"{CPU}[1h]", time=journal.t0 / 1000 + 60)["result"]
        )
        assert [(round(1000 * time), float(value)) for time, value in points] == [
            (journal.t0 + 1000 * second, (second + 0.1) * 0.01) for second in range(50)
        ]
        (result,) = prometheus.ask("query", query="runvitals_log", time=journal.t0 / 1000 + 52)["result"]
        assert result["metric"]["key"] == "loss"
        assert not prometheus.ask("query", query=CPU, time=journal.t0 / 1000 + 52)["result"]  # it has ended


def test_victoriametrics_accepts_it(journal: Journal, tmp_path: Path) -> None:
    hour(journal)
    with VictoriaMetrics(tmp_path / "victoria") as victoria:
        sender = Sender(journal.folder, f"remote_write:{victoria.url}")
        sender.send()
        sender.kill()
        (exported,) = victoria.exported(SENT)
        assert exported["metric"]["device"] == "eth0"
        assert exported["timestamps"][:50] == [journal.t0 + 1000 * second for second in range(50)]
        assert exported["values"][:50] == [100.0 * second for second in range(50)]
