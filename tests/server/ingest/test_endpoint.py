"""Requests to `POST /api/v1/ingest`, and their responses."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from runvitals.model import batch_body
from runvitals.model.filter import Filter, Predicate
from runvitals.model.run_sort import RunSort
from runvitals.server.http.body_limits import Limits
from runvitals.server.ingest.envelope import WireEnvelope
from runvitals.server.ingest.openapi import JsonEnvelope
from tests.server.ingest.server import NOW, Server

ROW = {"run": "abc", "writer": "curl", "seq": 1, "keys": ["cpu", "disk"], "t": [NOW, NOW + 1000]}
ENVELOPE = {**ROW, "v": [[1.5, 2.5], [None, 7]]}


@pytest.fixture
def make_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def make(**limits: Any) -> Server:
        servers.append(Server(str(tmp_path_factory.mktemp("store")), Limits(**limits)))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def server(make_server: Callable[..., Server]) -> Server:
    return make_server()


def test_json_is_stored_and_acknowledged(server: Server) -> None:
    response = server.json(ENVELOPE)
    assert (response.status_code, response.json()) == (
        200,
        {
            "run": "abc",
            "writer": "curl",
            "seq": 1,
            "stored": True,
            "schema": 1,
            "stop": False,
            "deleted": False,
        },
    )
    stored = server.samples()
    assert stored["cpu"] == [(NOW, 1.5), (NOW + 1000, 2.5)]
    assert np.isnan(stored["disk"][0][1])
    assert server.counters.points == 4


def test_a_repeated_envelope_is_acknowledged_but_not_stored_again(server: Server) -> None:
    assert server.json(ENVELOPE).json()["stored"] is True
    again = server.json({**ENVELOPE, "v": [[9, 9], [9, 9]]})
    assert (again.status_code, again.json()["stored"]) == (200, False)
    assert server.samples()["cpu"] == [(NOW, 1.5), (NOW + 1000, 2.5)]


def test_all_formats_store_the_same_values(server: Server) -> None:
    t, v = np.array(ROW["t"], "<i8"), np.array([[1.5, 2.5], [3.5, 4.5]])
    columns = {"t": t.tobytes(), "v": v.astype("<f8").tobytes()}
    packed = {"body": batch_body.pack(t, v.T)}
    for seq, (fields, kind) in enumerate(
        [(columns, "application/msgpack"), (packed, "application/x-msgpack"), ({"v": v.tolist()}, "")]
    ):
        envelope = {**ROW, "writer": f"w{seq}", **fields}
        if "body" in fields:
            del envelope["t"]
        response = server.post(msgspec.msgpack.encode(envelope), kind) if kind else server.json(envelope)
        assert (response.status_code, response.json()["schema"]) == (200, 1), response.text
    stored = server.store.read(server.store.active_runs(0), None, 0, 2 * NOW).series
    assert [series.values.tolist() for series in stored] == [[1.5, 2.5], [3.5, 4.5]] * 3


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.ZstdCompressor().compress)],
)
def test_content_encodings(server: Server, encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(json.dumps(ENVELOPE).encode())
    headers = {"content-encoding": encoding}
    assert server.post(packed, **headers).status_code == 200
    assert server.post(packed[:-6], **headers).status_code == 400
    assert server.post(pack(b" " * (17 << 20)), **headers).status_code == 413


def test_a_schema_number_replaces_the_keys(server: Server) -> None:
    schema = server.json(ENVELOPE).json()["schema"]
    numbered = {**ENVELOPE, "seq": 2, "schema": schema, "t": [NOW + 2000, NOW + 3000]}
    del numbered["keys"]
    assert server.json(numbered).json()["stored"] is True
    assert len(server.samples()["cpu"]) == 4
    assert server.json({**numbered, "schema": 77}).status_code == 409


def test_steps_are_stored_with_logged_values(server: Server) -> None:
    assert server.json({**ENVELOPE, "step": [10, 11]}).status_code == 200
    assert server.samples()["_step"] == [(NOW, 10.0), (NOW + 1000, 11.0)]


@pytest.mark.parametrize("step", [float("nan"), float("inf"), -(2.0**54)])
def test_a_step_out_of_range_is_rejected(server: Server, step: float) -> None:
    row = {"run": "abc", "writer": "w", "seq": 1, "keys": ["loss"], "t": [NOW], "v": [[1.0]]}
    packed = msgspec.msgpack.encode({**row, "step": struct.pack("<d", step)})
    response = server.post(packed, "application/msgpack")
    assert response.status_code == 422
    assert "expected a number from -2^53 to 2^53" in response.json()["error"]


def test_repeated_rows_count_once_in_the_summary(server: Server) -> None:
    writer = {"run": "abc", "writer": "train.n1.a"}
    logged = {"values": {"cpu": 77}, "times": {}, "counts": {}}
    info = {"t": NOW, "metrics": {"cpu": {"summary": "mean"}}, "logged": logged}
    first = {"keys": ["cpu", "disk"], "t": [NOW, NOW + 1000], "v": [[1.0, 2.0], [3.0, None]], "step": [0, 1]}
    second = {"keys": ["cpu"], "t": [NOW + 2000], "v": [[6.0]], "step": [2]}
    sampled = {"keys": ["gpu"], "t": [NOW], "v": [[9.0]]}
    assert server.json({**writer, "seq": 1, "records": [[1, "info", info]]}).status_code == 200
    for _ in range(2):
        assert server.json([{**writer, "seq": 2, **first}, {**writer, "seq": 4, **second}]).status_code == 200
    assert server.json({**writer, "seq": 5, **sampled}).status_code == 200
    run_filter = Filter(where=(Predicate.parse("summary.cpu = 3"),))
    [run] = server.metadata_store.runs.page(run_filter, RunSort("summary.disk"), NOW, 10, None).runs
    assert server.metadata_store.sections.read([run.id])[run.id].summary() == {"cpu": 3.0, "disk": 3.0}


def test_keys_are_removed_from_facts(server: Server) -> None:
    records = [
        [1, "info", {"t": NOW, "config": {"lr": 0.1, "seed": 1}}],
        [2, "info", {"t": NOW + 1, "removed": {"config": ["lr"]}}],
    ]
    assert (
        server.json({"run": "abc", "writer": "train.n1.a", "seq": 1, "records": records}).status_code == 200
    )
    [run] = server.metadata_store.runs.page(Filter(), RunSort(), NOW, 10, None).runs
    assert server.metadata_store.sections.read([run.id])[run.id].shared == {"config": {"seed": 1}}


def test_events_of_old_relays_are_stored_under_their_present_names(server: Server) -> None:
    records = [
        [1, "event", {"t": NOW, "name": "door_shut"}],
        [2, "event", {"t": NOW, "name": "not_inquired"}],
    ]
    assert (
        server.json({"run": "abc", "writer": "monitor.n1.a", "seq": 1, "records": records}).status_code == 200
    )
    run = server.metadata_store.runs.find("abc", NOW)
    assert run is not None
    names = [event.name for event in server.metadata_store.events.of_run(run.id)]
    assert names == ["accept_failed", "facts_failed"]


def test_records_are_stored_in_the_metadata_store(server: Server) -> None:
    records = [
        [1, "info", {"t": NOW, "config": {"lr": 0.1}}],
        [2, "info", {"t": NOW, "machine": {"cpus": 4}}],
        [3, "event", {"t": NOW, "name": "alert", "level": "warning", "text": "loss is NaN", "step": 7}],
        [4, "lifecycle", {"t": NOW, "what": "attach", "pid": 7, "rank": 0}],
        [5, "console", {"t": NOW, "stream": 1, "text": "epoch 1\n"}],
        [6, "lifecycle", {"t": NOW + 1, "what": "end", "state": "failed", "exit_code": 3}],
    ]
    envelope = {"run": "abc", "writer": "monitor.node1.a", "seq": 1, "records": records}
    for stored in (True, False):
        assert server.json(envelope).json()["stored"] is stored
    run = server.metadata_store.runs.find("abc", NOW + 5)
    assert run is not None
    assert (run.state, run.ending.exit_code) == ("failed", 3)
    sections = server.metadata_store.sections.read([run.id])[run.id]
    assert sections.shared == {"config": {"lr": 0.1}}
    assert sections.by_host == {"machine": {"node1": {"cpus": 4}}}
    assert [(event.name, event.data) for event in server.metadata_store.events.of_run(run.id)] == [
        ("alert", {"step": 7})
    ]
    assert [
        (process.host, process.pid, process.rank)
        for process in server.metadata_store.writers.processes(run.id)
    ] == [("node1", 7, 0)]
    assert [line.text for line in server.metadata_store.console.tail(run.id).pieces] == ["epoch 1\n"]


@pytest.mark.parametrize(
    ("change", "status", "text"),
    [
        ({"run": "a/b"}, 422, "invalid run id 'a/b'"),
        ({"run": 7}, 400, "Expected `str`, got `int` - at `$.run`"),
        ({"seq": None}, 400, "seq is missing"),
        ({"seq": -1}, 400, "Expected `int` >= 0"),
        ({"v": [[1, 2]]}, 400, "expected 2 lists, one per key"),
        ({"v": [[1], [2, 3]]}, 400, "v[0]: expected 2 values"),
        ({"t": [1, 2]}, 422, "ms UTC from"),
        ({"t": [NOW // 1000, NOW]}, 422, "is it in seconds?"),
        ({"t": [NOW, 10**30]}, 422, "expected ms UTC"),
        ({"keys": ["a", "a"]}, 422, "'a' occurs more than once"),
        ({"keys": ["a", ""]}, 422, "keys[1]: invalid key ''"),
        ({"keys": None}, 400, "keys (or schema"),
        ({"t": "AAAA"}, 400, "t is a string"),
        ({"records": [[1, "poem", {"t": 1}]]}, 422, "records[0]: t: invalid time 1;"),
        (
            {"records": [[1, "lifecycle", {"t": NOW, "what": "end", "state": "lost"}]]},
            422,
            "invalid state 'lost'",
        ),
    ],
)
def test_invalid_envelopes_are_rejected_and_store_nothing(
    server: Server, change: dict[str, Any], status: int, text: str
) -> None:
    response = server.json({**ENVELOPE, **change})
    assert (response.status_code, text in response.json()["error"]) == (status, True), response.text
    assert server.runs() == 0
    listed = server.json([{**ENVELOPE, "run": "good"}, {**ENVELOPE, **change}])
    assert (listed.status_code, listed.json()["index"]) == (status, 1), listed.text
    assert server.runs() == 0


def test_records_of_unknown_kinds_are_stored_as_events(server: Server) -> None:
    """A newer client may send them; the rest of the envelope must be stored, too."""
    records = [
        [1, "poem", {"t": NOW, "lines": ["a", "b"]}],
        [2, "lifecycle", {"t": NOW + 1, "what": "pause", "why": "a neighbour"}],
        [3, "lifecycle", {"t": NOW + 2, "what": "end", "state": "preempted"}],
        [4, "info", {"t": NOW + 3, "revision": 7, "config": {"lr": 0.1}}],
        [5, "mood", {"good": True}],
    ]
    assert server.json({**ENVELOPE, "records": records}).json()["stored"]
    run = server.metadata_store.runs.find("abc", NOW)
    assert run is not None
    kept = [
        (event.name, event.time_ms - NOW, event.data) for event in server.metadata_store.events.of_run(run.id)
    ]
    assert sorted(kept) == [
        ("info", 3, {"revision": 7}),
        ("lifecycle.end", 2, {"what": "end", "state": "preempted"}),
        ("lifecycle.pause", 1, {"what": "pause", "why": "a neighbour"}),
        ("mood", 0, {"good": True}),
        ("poem", 0, {"lines": ["a", "b"]}),
    ]
    assert server.metadata_store.sections.read([run.id])[run.id].shared["config"] == {"lr": 0.1}


def test_the_openapi_document_has_every_field() -> None:
    assert set(JsonEnvelope.__struct_fields__) == set(WireEnvelope.__struct_fields__) - {"body"}


def test_devices_are_read_from_the_machine_section(server: Server) -> None:
    gpus = [
        {"index": 0, "uuid": "GPU-1", "pci": "0000:01:00.0", "name": "NVIDIA H100", "used": True},
        {"index": 1, "pci": "0000:02:00.0", "memory_bytes": 2**70, "used": "yes"},
        {"index": 2},
        {"uuid": 7},
        {"uuid": "x" * 1000},
        "GPU",
        {"index": 3, "uuid": "GPU-1"},
    ]
    machine = {"gpu_nvidia": gpus, "cpus": 4, "mounts": [{"path": "/"}], "odd": "text"}
    about = {"role": "monitor", "host": "node1"}
    envelope = {"run": "abc", "writer": "monitor.node1.a", "seq": 1, "about": about}
    response = server.json({**envelope, "records": [[1, "info", {"t": NOW, "machine": machine}]]})
    assert response.status_code == 200, response.text
    run = server.metadata_store.runs.find("abc", NOW)
    assert run is not None
    devices = server.metadata_store.devices.of_run(run.id)
    assert [(device.identity, device.position, device.vendor, device.used) for device in devices] == [
        ("node1/0000:02:00.0", 1, "nvidia", None),
        ("GPU-1", 3, "nvidia", None),
    ]
    run_filter = Filter(device="GPU-1")
    assert [
        row.uid for row in server.metadata_store.runs.page(run_filter, RunSort("started_ms"), NOW).runs
    ] == ["abc"]


def test_a_run_is_lost_while_silent_and_running_when_it_is_heard_of_again(server: Server) -> None:
    about = {"role": "monitor", "host": "node1", "interval_s": 5.0}
    writer = {"run": "abc", "writer": "monitor.node1.a", "about": about}

    def state() -> str:
        server.recorder.heartbeats.flush()
        run = server.metadata_store.runs.find("abc", server.now_ms)
        assert run is not None
        return run.state

    assert server.json({**ENVELOPE, **writer}).status_code == 200
    for _ in range(4):  # only heartbeats
        server.now_ms += 20_000
        assert server.json(writer).json()["stored"] is False
        assert state() == "running"
    server.now_ms += 25_001
    assert state() == "lost"
    server.now_ms += 3_600_000
    late = {**ENVELOPE, **writer, "seq": 2, "t": [NOW + 100_000, NOW + 101_000]}
    assert server.json(late).json()["stored"] is True  # samples of the silent time
    assert state() == "running"
    end = {"t": NOW + 120_000, "what": "end", "state": "finished", "exit_code": 0}
    server.json({**writer, "seq": 3, "records": [[9, "lifecycle", end]]})
    server.now_ms += 10**9
    assert state() == "finished"


def test_unsupported_requests_are_rejected(server: Server) -> None:
    assert server.post(b"", "text/csv").status_code == 415
    assert server.post(b"{}", **{"content-encoding": "br"}).status_code == 415
    assert server.post(b"[" * 100_000).status_code == 400
    assert server.post(b" " * (9 << 20)).status_code == 413


def test_requests_beyond_the_memory_limit_are_rejected_with_retry_after(
    make_server: Callable[..., Server],
) -> None:
    response = make_server(bytes_in_flight=10).json(ENVELOPE)
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")


def test_the_ack_reports_that_a_run_is_stopped_and_deleted(server: Server) -> None:
    server.json(ENVELOPE)
    run = server.metadata_store.runs.find("abc", NOW)
    assert run is not None
    server.metadata_store.runs.request_stop(run.id, NOW)
    server.metadata_store.runs.delete([run.id], NOW)
    server.recorder.heartbeats.flush()
    body = server.json({**ENVELOPE, "seq": 2}).json()
    assert (body["stop"], body["deleted"], body["stored"]) == (True, True, False)


@pytest.mark.parametrize(
    ("sent", "started_ms"),
    [
        ({"t": [NOW - 1000, NOW - 60_000]}, NOW - 60_000),
        ({"t": [NOW - 1000, NOW - 60_000], "about": {"started_ms": NOW - 5000}}, NOW - 5000),
        ({"t": [NOW + 1000, NOW + 2000]}, NOW),
        ({"t": [], "v": [[], []]}, NOW),
    ],
)
def test_a_run_starts_with_its_oldest_row_unless_started_ms_is_sent(
    server: Server, sent: dict[str, Any], started_ms: int
) -> None:
    assert server.json({**ENVELOPE, **sent}).status_code == 200
    row = server.metadata_store.runs.find("abc", NOW)
    assert row is not None
    assert row.started_ms == started_ms


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("kind", ["event", "info", "lifecycle", "media", "of a later version"])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (msgspec.msgpack.Ext(5, b"x"), "config.lr: a value of type Ext, which JSON does not have"),
        (b"x", "config.lr: a value of type bytes, which JSON does not have"),
        ({None: 1}, "config.lr: the key None is not a text"),
        ({True: 1}, "config.lr: the key True is not a text"),
        ({7: 1}, "config.lr: the key 7 is not a text"),
        (nested(120), "lists and maps are nested too deeply; expected at most 100 levels"),
    ],
)
def test_a_record_that_no_reader_could_show_is_not_stored(
    server: Server, kind: str, value: object, why: str
) -> None:
    record = {"t": NOW, "what": "x", "key": "k", "kind": "image", "config": {"lr": value}}
    body = msgspec.msgpack.encode({**ROW, "v": [[1.0, 2.0], [3.0, 4.0]], "records": [[0, kind, record]]})
    response = server.post(body, "application/msgpack")
    assert (response.status_code, why in response.text) == (422, True), response.text
    assert server.runs() == 0
