"""The page that Prometheus scrapes, checked with the official parsers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as text_format

from runvitals.journal import frames
from runvitals.journal.clock import RunClock, boot_id
from runvitals.journal.writer import JournalWriter
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.metric import placeholders
from runvitals.relay.batch import Batch, LogRow, Note, RunFacts, Samples, WriterFacts
from runvitals.relay.destinations.prometheus import destination
from runvitals.relay.destinations.prometheus.exposition import OPENMETRICS, TEXT, content_type, render
from runvitals.relay.destinations.prometheus.latest_values import ENDED_MS, LINGER_MS, LatestRunValues
from runvitals.relay.timeseries.naming import Namer
from tests.patience import eventually
from tests.relay.journals import Journal, Sender
from tests.relay.real_servers import Prometheus, get
from tests.relay.receiver import now_ms

YEAR_MS = 365 * 86_400_000
T0 = 1_700_000_000_000


def batch(role: str = "monitor", **values: float) -> Batch:
    """A sample of a run, or a `log()` call."""
    run = RunFacts("abc", "digits")
    run.run = {"name": "first try", "group": "g"}
    writer = WriterFacts(f"{role}.node1.1", role, "node1")
    writer.interval_s, writer.pid = 1.0, 7
    new_batch = Batch(run, writer, 0, 1)
    if role == "monitor":
        table = Samples(tuple(values))
        import struct

        table.add(0, T0, struct.pack(f"<{len(values)}d", *values.values()))
        new_batch.samples.append(table)
    else:
        new_batch.logs.append(LogRow(0, T0, 3, values))
    return new_batch


def end(last: Batch, state: str = "finished") -> Batch:
    last.notes.append(Note(1, "lifecycle", {"t": T0, "what": "end", "state": state}))
    return last


def shown(board: LatestRunValues, now: int = T0) -> dict[str, float]:
    """`name{labels}` -> value, from the page at a given time."""
    lines = render(board.samples(now), TEXT).decode().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


def of_every_metric() -> Batch:
    """A sample with a value for every metric definition."""
    keys = [
        row.key.format(**dict.fromkeys(placeholders(row.key), "0")) for row in DEFINITIONS.metrics if row.name
    ]
    return batch(**dict.fromkeys(keys, 1.0))


def test_values_are_in_base_units_with_labels() -> None:
    board = LatestRunValues()
    board.add(batch(**{"memory.usedMB": 3.0, "gpu.1.gpu": 50.0, "network.eth0.sent": 7.0}), T0)
    text = shown(board)
    where = 'host="node1",project="digits",run="abc"'
    assert text[f"runvitals_memory_used_bytes{{{where}}}"] == 3 * 2**20
    assert text[f'runvitals_gpu_utilization_ratio{{device="1",{where}}}'] == 0.5
    assert text[f'runvitals_network_interface_sent_bytes_total{{device="eth0",{where}}}'] == 7.0


def test_run_info_and_state() -> None:
    board = LatestRunValues()
    board.add(batch(cpu=1.0), T0)
    info = 'runvitals_run_info{group="g",name="first try",project="digits",run="abc"}'
    state = 'runvitals_run_state{{host="node1",project="digits",run="abc",state="{}"}}'
    assert {info, state.format("running")} <= shown(board).keys()
    board.add(end(batch(cpu=1.0), "crashed"), T0)
    assert state.format("crashed") in shown(board, T0 + 60_000)
    assert shown(board, T0 + ENDED_MS) == {}
    assert board.is_over(T0 + ENDED_MS)


def test_logged_values_are_labelled_with_their_key() -> None:
    board = LatestRunValues()
    board.add(batch("train", **{"train/loss": 0.25}), T0)
    where = 'process="7",project="digits",run="abc"'
    assert shown(board)[f'runvitals_log{{host="node1",key="train/loss",{where}}}'] == 0.25
    assert shown(board)[f'runvitals_log_step{{host="node1",{where}}}'] == 3.0


@pytest.mark.parametrize("why", ["gap", "silence", "end"])
def test_values_expire(why: str) -> None:
    board = LatestRunValues()
    board.add(batch(cpu=50.0), T0)
    now = T0 + 1000
    if why == "gap":
        board.add(batch(cpu=float("nan")), now)
    elif why == "silence":
        now = T0 + 10_001
    else:
        board.add(end(batch(memory_percent=1.0)), now)
        assert any("process_cpu" in name for name in shown(board, now))  # short runs are scraped, too
        now += LINGER_MS
    assert not any("process_cpu" in name for name in shown(board, now))


def test_values_expire_correctly_when_the_clock_is_set() -> None:
    set_by_ms = [0]
    clock = RunClock(0, lambda: (T0 + set_by_ms[0]) * 1_000_000, lambda: T0 * 1_000_000)
    board = LatestRunValues()
    for by_ms in (0, YEAR_MS, -YEAR_MS, 0):
        set_by_ms[0] = by_ms
        new_batch = batch(cpu=50.0)
        new_batch.writer.clock = clock
        board.add(new_batch, T0 + by_ms)
        assert any("process_cpu" in name for name in shown(board, T0 + by_ms))
        assert not any("process_cpu" in name for name in shown(board, T0 + by_ms + 10_001))


def test_official_parsers_accept_both_formats() -> None:
    board = LatestRunValues()
    board.add(of_every_metric(), T0)
    board.add(batch("train", **{'lo"ss\\\n': float("inf"), "nan": float("nan"), "\ud800": 1.0}), T0)
    strict = {family.name: family for family in openmetrics(render(board.samples(T0), OPENMETRICS).decode())}
    loose = {family.name: family for family in text_format(render(board.samples(T0), TEXT).decode())}
    assert strict["runvitals_memory_used_bytes"].unit == "bytes"
    assert strict["runvitals_gpu_energy_joules"].type == "counter"
    assert strict["runvitals_run"].type == "info"
    assert {sample.labels["key"] for sample in strict["runvitals_log"].samples} == {'lo"ss\\\n', "nan", "?"}
    assert loose["runvitals_log"].samples[0].labels["key"] == 'lo"ss\\\n'
    named = {row.prometheus.removesuffix("_total") for row in DEFINITIONS.metrics if row.prometheus}
    assert named <= strict.keys()


def test_promtool_accepts_the_page() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    board = LatestRunValues()
    board.add(of_every_metric(), T0)
    board.add(batch("train", loss=1.0), T0)
    page = render(board.samples(T0), TEXT)
    done = subprocess.run([promtool, "check", "metrics"], input=page, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_scraped_metrics_keep_their_name_and_labels() -> None:
    new_batch = batch(
        **{"openmetrics.dcgm.DCGM_FI_DEV_GPU_TEMP.1": 40.0, "openmetrics.dcgm.jobs_total.0": 2.0}
    )
    facts = {
        "DCGM_FI_DEV_GPU_TEMP": {"type": "gauge", "series": [{"gpu": "0"}, {"gpu": "1", "host": "x"}]},
        "jobs_total": {"type": "counter", "series": [{}]},
    }
    new_batch.run.machine = {"openmetrics": {"dcgm": {"metrics": facts}}}
    temp = Namer(new_batch).series("openmetrics.dcgm.DCGM_FI_DEV_GPU_TEMP.1")
    assert temp.family.name == "runvitals_openmetrics_DCGM_FI_DEV_GPU_TEMP"
    assert dict(temp.labels) == {
        "run": "abc", "project": "digits", "host": "node1", "endpoint": "dcgm", "gpu": "1", "label_host": "x",
    }  # fmt: skip
    assert Namer(new_batch).series("openmetrics.dcgm.jobs_total.0").family.kind == "counter"
    new_batch.run.machine = {}  # the facts are not there yet
    assert Namer(new_batch).series("openmetrics.dcgm.jobs_total.0").family.name == "runvitals_other"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", TEXT),
        ("*/*", TEXT),
        ("application/openmetrics-text; version=1.0.0", OPENMETRICS),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", OPENMETRICS),
        ("application/openmetrics-text;q=0.1, text/plain;q=0.9", TEXT),
        ("application/openmetrics-text;q=0", TEXT),
        ("application/openmetrics-text;q=much", TEXT),
    ],
)
def test_content_negotiation(accept: str, expected: str) -> None:
    assert content_type(accept) == expected


@pytest.mark.parametrize("address", ["127.0.0.1:", "[::1]", "", "9401", "//localhost:9401/"])
def test_valid_addresses(address: str) -> None:
    assert destination.read_address(address)[1] == 9401


@pytest.mark.parametrize("address", ["127.0.0.1:many", "127.0.0.1:70000", "http://127.0.0.1:9401"])
def test_invalid_addresses(address: str) -> None:
    with pytest.raises(ValueError, match="invalid listen address"):
        destination.read_address(address)


# -- over HTTP

ANY = ("127.0.0.1", 0)


@pytest.fixture
def page() -> Iterator[destination.Exporter]:
    server = destination.acquire(ANY)
    yield server
    destination.release(ANY)


@pytest.fixture
def sender(journal: Journal, page: destination.Exporter) -> Iterator[Sender]:
    sender = Sender(journal.folder, "prometheus:127.0.0.1:0")
    yield sender
    sender.kill()


def test_serves_a_run(journal: Journal, page: destination.Exporter, sender: Sender) -> None:
    url = f"http://127.0.0.1:{page.port}"
    body, _ = get(f"{url}/metrics", OPENMETRICS)
    assert body == b"# EOF\n"
    journal.monitor.sample(now_ms(), {"cpu": 50.0})
    sender.send()
    body, kind = get(f"{url}/metrics", OPENMETRICS)
    assert kind == OPENMETRICS
    assert b'runvitals_process_cpu_utilization_ratio{host="node1",project="digits",run="abc"} 0.5' in body
    assert body.endswith(b"\n# EOF\n")
    assert get(f"{url}/metrics")[1] == TEXT


def test_serves_a_run_after_the_clock_was_set(
    journal: Journal, page: destination.Exporter, sender: Sender
) -> None:
    behind = RunClock(RunClock().anchor_ms - YEAR_MS)
    about = {"run": "abc", "host": "node1", "role": "monitor", "interval_s": 1.0, "boot_id": boot_id()}
    journal.monitor = JournalWriter(journal.folder, "monitor.node1.2", about, clock=behind)
    journal.monitor.sample(behind.now_ms(), {"cpu": 50.0})
    sender.send()
    assert b"runvitals_process_cpu" in get(f"http://127.0.0.1:{page.port}/metrics", OPENMETRICS)[0]
    sender.kill()
    again = Sender(
        journal.folder, "prometheus:127.0.0.1:0"
    )  # all it has about the clock is the saved position
    journal.monitor.sample(behind.now_ms(), {"memory.usedMB": 3.0})
    again.send()
    body, _ = get(f"http://127.0.0.1:{page.port}/metrics", OPENMETRICS)
    assert b"runvitals_memory_used_bytes" in body
    again.kill()


def test_prometheus_scrapes_the_page(
    journal: Journal, page: destination.Exporter, sender: Sender, tmp_path: Path
) -> None:
    name = "runvitals_process_cpu_utilization_ratio"
    journal.monitor.sample(now_ms(), {"cpu": 50.0, "network.eth0.sent": 3.0})
    sender.send()
    with Prometheus(tmp_path / "prometheus", [f"127.0.0.1:{page.port}"]) as prometheus:
        eventually(lambda: prometheus.ask("query", query=name)["result"])
        (result,) = prometheus.ask("query", query=name)["result"]
        assert result["value"][1] == "0.5"
        assert result["metric"]["run"] == "abc"
        (meta,) = prometheus.ask("targets/metadata", metric="runvitals_network_interface_sent_bytes")
        assert (meta["type"], meta["unit"]) == ("counter", "bytes")  # from OpenMetrics, which it requested
        journal.monitor.json(frames.LIFECYCLE, {"t": now_ms(), "what": "end", "state": "failed"})
        sender.send()
        page.latest("abc")._ended["node1"] = (now_ms() - LINGER_MS, "failed")  # some time later
        eventually(
            lambda: not prometheus.ask("query", query=name)["result"]
        )  # stale at once, not after 5 min
        (state,) = prometheus.ask("query", query="runvitals_run_state")["result"]
        assert state["metric"]["state"] == "failed"
