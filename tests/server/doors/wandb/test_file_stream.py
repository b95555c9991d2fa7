"""The stream of a run's lines: numbered, repeated, rewritten, damaged, hostile."""

from __future__ import annotations

import gzip
import json
import time
from datetime import datetime, timezone
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S, eventually
from tests.server.doors.wandb.conftest import Door

HISTORY, EVENTS, SUMMARY = "wandb-history.jsonl", "wandb-events.jsonl", "wandb-summary.json"
OF_PAGE = {"sec-fetch-site": "same-origin", "content-type": "application/json"}
NOW_S = time.time() - 3600


def rows(first: int, count: int, **more: Any) -> dict[str, Any]:
    """Lines of history from a line on, each a second after the one before."""
    lines = [
        json.dumps({"_step": n, "_timestamp": NOW_S + n, "_runtime": n, "loss": n / 2, **more})
        for n in range(first, first + count)
    ]
    return {HISTORY: {"offset": first, "content": lines}}


def printed(offset: int, *texts: str) -> dict[str, Any]:
    return {"output.log": {"offset": offset, "content": [f"2026-08-21T10:00:00.000001 {t}" for t in texts]}}


def send(door: Door, files: dict[str, Any], client: str = "", status: int = 200, **more: Any) -> Any:
    headers = {"x-wandb-use-async-filestream": "true", "x-wandb-async-client-id": client} if client else {}
    url = f"{door.served.url}/files/main/digits/{door.run}/file_stream"
    response = httpx.post(url, json={"files": files, **more}, headers=headers, timeout=PATIENCE_S)
    assert response.status_code == status, response.text
    return response.json()


def losses(door: Door) -> dict[float, float]:
    """The logged losses by step."""
    by_step = {}
    for group in door.shown("/history", keys="loss")["groups"]:
        by_step.update(zip(group["step"], group["series"]["loss"], strict=True))
    return by_step


def texts(door: Door) -> list[str]:
    return [piece["text"] for piece in door.shown("/console")["pieces"]]


def test_rows_are_stored_once_however_often_they_are_sent(door: Door) -> None:
    door.begin(config=json.dumps({"_wandb": {"value": {"m": [{"1": "loss", "7": [3]}]}}}))
    send(door, rows(0, 4))
    send(door, rows(0, 4))
    send(door, rows(2, 4))  # as after an answer that was lost, when more had been logged
    assert losses(door) == {n: n / 2 for n in range(6)}
    assert door.shown()["summary"]["loss"] == pytest.approx(sum(n / 2 for n in range(6)) / 6)


def test_values_that_json_does_not_know_and_nested_ones(door: Door) -> None:
    door.begin()
    values = '"a": NaN, "b": -Infinity, "c": 1.79e+09, "d": {"e": 1, "f": {"g": true}}'
    line = f'{{"_step": 0, "_timestamp": {NOW_S}, {values}}}'
    send(door, {HISTORY: {"offset": 0, "content": [line]}})
    (group,) = door.shown("/history")["groups"]
    assert group["series"] == {"a": [None], "b": [None], "c": [1.79e9], "d.e": [1.0], "d.f.g": [1.0]}


def test_rows_of_the_same_time_are_all_kept(door: Door) -> None:
    door.begin()
    lines = [json.dumps({"_step": n, "_timestamp": NOW_S, "loss": n}) for n in range(5)]
    send(door, {HISTORY: {"offset": 0, "content": lines}})
    assert losses(door) == {n: n for n in range(5)}
    (group,) = door.shown("/history", keys="loss")["groups"]
    assert group["t"] == [round(NOW_S * 1000)] * 5


def test_rows_count_where_the_client_leaves_out_a_summary_that_is_too_large(door: Door) -> None:
    door.begin()
    summary = {SUMMARY: {"offset": 0, "content": [json.dumps({"loss": 0.5, "best": 7})]}}
    send(door, rows(0, 2) | summary)
    send(door, rows(2, 2))
    assert door.shown()["summary"] == {"loss": 1.5, "best": 7}


def test_lines_that_are_damaged_are_left_out_and_reported(door: Door) -> None:
    door.begin()
    good = json.dumps({"_step": 1, "_timestamp": NOW_S, "loss": 1})
    send(
        door, {HISTORY: {"offset": 0, "content": ["{", "[]", good]}, EVENTS: {"offset": 0, "content": ["x"]}}
    )
    assert losses(door) == {1: 1}
    assert ["3 lines" in event["text"] for event in door.shown("/events")] == [True]


@pytest.mark.parametrize(
    "seconds", [-1, 0, 1e300, "soon", None, pytest.param(time.time() + 10 * 86400, id="in 10 days")]
)
def test_a_time_that_cannot_be_does_not_lose_the_row(door: Door, seconds: Any) -> None:
    door.begin()
    line = json.dumps({"_step": 0, "_timestamp": seconds, "loss": 2})
    send(door, {HISTORY: {"offset": 0, "content": [line]}})
    assert losses(door) == {0: 2}


def test_rows_with_many_different_names(door: Door) -> None:
    door.begin()
    lines = [json.dumps({"_step": n, "_timestamp": NOW_S + n, f"m{n}": n, "loss": n}) for n in range(60)]
    send(door, {HISTORY: {"offset": 0, "content": lines}})
    assert losses(door) == {n: n for n in range(60)}


def test_system_metrics_get_our_names_and_machines(door: Door) -> None:
    door.begin()
    values = {"system.memory": 10.5, "system.gpu.0.powerWatts": 300, "system.cpu/l:node2": 7.0}
    line = json.dumps({"_wandb": True, "_timestamp": NOW_S, "_runtime": 1, **values, "system.disk.in": None})
    send(door, {EVENTS: {"offset": 0, "content": [line]}})
    last = door.shown()["last"]
    assert last["node1"] == {"memory_percent": 10.5, "gpu.0.powerWatts": 300.0}
    assert last["node2"] == {"cpu": 7.0}


def test_lines_of_the_console_and_progress_bars_that_rewrite_them(door: Door) -> None:
    door.begin()
    send(door, printed(0, "begin", "10%"))
    send(door, printed(1, "60%"))
    send(door, printed(1, "100%", "end"))
    send(door, {"output.log": {"offset": 3, "content": ["ERROR 2026-08-21T10:00:01 oh\n"]}})
    assert texts(door) == ["begin\n", "100%\n", "end\n", "oh\n"]
    assert [piece["stream"] for piece in door.shown("/console")["pieces"]] == ["stdout"] * 3 + ["stderr"]


def test_the_summary_is_the_last_that_was_sent(door: Door) -> None:
    door.begin()
    for best in (1, 2):
        line = json.dumps({"best": best, "net": {"a": 1}, "_step": 5, "img": {"_type": "image-file"}})
        send(door, {SUMMARY: {"offset": 0, "content": [line]}})
    assert door.shown()["summary"] == {"best": 2, "net.a": 1}


@pytest.mark.parametrize(("code", "state"), [(0, "finished"), (1, "failed"), (255, "stopped")])
def test_how_the_run_ended(door: Door, code: int, state: str) -> None:
    door.begin()
    send(door, {})
    door.becomes("running")
    send(door, rows(0, 1), complete=True, exitcode=code)
    door.becomes(state)
    assert door.shown()["exit_code"] == code


def test_a_run_that_is_resumed_runs_again_and_ends_as_its_last_process(door: Door) -> None:
    door.begin()
    send(door, rows(0, 2), complete=True, exitcode=1)
    door.begin(host="node2")
    door.becomes("running")
    send(door, rows(2, 2))
    send(door, {}, complete=True, exitcode=0)
    door.becomes("finished")
    assert losses(door) == {n: n / 2 for n in range(4)}


def test_a_process_that_does_not_resume_the_run_replaces_what_was_logged(door: Door) -> None:
    def process(count: int, start_s: float, loss: float) -> dict[str, Any]:
        assert door.begin()["bucket"]["historyLineCount"] == 0  # else clients add it to their numbers
        at = [(step, start_s + step / 10) for step in range(count)]
        history = [json.dumps({"_step": step, "_timestamp": t, "loss": loss}) for step, t in at]
        system = [json.dumps({"_timestamp": t, "system.cpu": loss}) for _, t in at]
        clock = datetime.fromtimestamp(start_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")
        return {
            HISTORY: {"offset": 0, "content": history},
            EVENTS: {"offset": 0, "content": system},
            SUMMARY: {"offset": 0, "content": [json.dumps({"loss": loss, f"best of {loss}": 1})]},
            "output.log": {"offset": 0, "content": [f"{clock} {loss}"]},
        }

    first = process(5, time.time() - 60, 1.0)
    send(door, first)
    process(5, time.time() - 60, 1.0)
    send(door, first)  # as `wandb sync` does again
    assert losses(door) == dict.fromkeys(range(5), 1.0)
    assert door.shown()["events"] == []
    second = process(3, time.time() + 1, 2.0)
    send(door, second)
    send(door, second)
    assert losses(door) == {0: 2.0, 1: 2.0, 2: 2.0}
    assert door.shown()["summary"] == {"loss": 2.0, "best of 2.0": 1}
    assert door.shown()["last"]["node1"] == {"cpu": 2.0}
    assert texts(door) == ["1.0\n", "2.0\n"]
    (event,) = door.shown()["events"]
    assert "begun again without resuming it: what it had logged from step 0 on was replaced" in event["text"]
    send(door, {HISTORY: {"offset": 3, "content": [json.dumps({"_step": 3, "loss": 3.0})]}})
    assert losses(door) == {0: 2.0, 1: 2.0, 2: 2.0, 3: 3.0}


def session(number: int, steps: range, **more: Any) -> dict[str, Any]:
    """What a recorded session logged, each an hour after the one before."""
    started_s = NOW_S - 36_000 + 3600 * number
    history = [
        json.dumps({"_step": step, "_timestamp": started_s + step, "loss": 100 * number + step, **more})
        for step in steps
    ]
    system = [json.dumps({"_timestamp": started_s + step, "system.cpu": number}) for step in steps]
    summary = json.dumps({"loss": 100 * number + steps[-1], "_timestamp": started_s + steps[-1]})
    return {
        HISTORY: {"offset": 0, "content": history},
        EVENTS: {"offset": 0, "content": system},
        SUMMARY: {"offset": 0, "content": [summary]},
    }


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1), (1, 3, 2, 1, 3)])
def test_recorded_sessions_are_merged_in_any_order(door: Door, order: tuple[int, ...]) -> None:
    steps = {1: range(50), 2: range(40, 80), 3: range(80, 100)}
    for number in order:
        door.begin()
        files = session(number, steps[number])
        send(door, files)
        send(door, files)
    assert losses(door) == {
        step: (100 if step < 40 else 200 if step < 80 else 300) + step for step in range(100)
    }
    assert door.shown()["summary"]["loss"] == 399
    (cpu,) = door.shown("/statistics", keys="cpu")
    assert cpu["n"] == 110


def test_a_session_that_is_sent_in_parts_replaces_and_is_replaced(door: Door) -> None:
    door.begin()
    send(door, session(2, range(100, 120)))
    door.begin()
    earlier = session(1, range(150))[HISTORY]["content"]
    for first in range(0, 150, 30):
        send(door, {HISTORY: {"offset": first, "content": earlier[first : first + 30]}})
    assert losses(door) == {step: (100 if step < 100 else 200) + step for step in range(120)}
    texts = [event["text"] for event in door.shown()["events"]]
    assert texts == [
        f"{count} rows of an earlier session were left out: a later one logged their steps again"
        for count in (20, 30)
    ]


def test_media_of_a_session_that_is_replaced_are_removed_with_its_rows(door: Door) -> None:
    caption = {"_type": "html-file", "path": "media/html/a.html", "size": 1, "sha256": "0" * 64}
    for number, steps in ((1, range(3)), (3, range(4, 6)), (2, range(2, 4))):
        door.begin()
        files = session(number, steps, page=caption)
        send(door, files)
        send(door, files)
    page = door.shown("/media/records", key="page")
    assert [record["step"] for record in page["records"]] == [0, 1, 2, 3, 4, 5]


def test_processes_that_share_a_run_have_lines_of_their_own(door: Door) -> None:
    door.begin()
    for client, value in (("one", 1.0), ("two", 2.0)):
        send(door, {HISTORY: {"offset": 0, "content": [
            json.dumps({"_step": 0, "_timestamp": NOW_S, f"of_{client}": value})
        ]}}, client=client)  # fmt: skip
    series = {k: v for group in door.shown("/history")["groups"] for k, v in group["series"].items()}
    assert series == {"of_one": [1.0], "of_two": [2.0]}
    send(door, {}, client="one", complete=True, exitcode=0)
    door.becomes("finished")


def test_a_user_who_stops_the_run_stops_the_client(door: Door) -> None:
    door.begin()
    assert send(door, {}) == {}
    url = f"{door.served.url}/api/v1/runs/{door.run}/stop"
    assert httpx.post(url, headers=OF_PAGE, timeout=PATIENCE_S).status_code < 300
    eventually(lambda: send(door, {}) == {"stopped": True})
    send(door, {}, complete=True, exitcode=255)
    door.becomes("stopped")
    door.begin()  # a new process is not stopped by what was asked of the one before
    assert send(door, {}) == {}


def test_a_compressed_body_and_a_line_of_ten_megabytes(door: Door) -> None:
    door.begin()
    line = json.dumps({"_step": 0, "_timestamp": NOW_S, "loss": 1, "text": "x" * 10_000_000})
    body = json.dumps({"files": {HISTORY: {"offset": 0, "content": [line]}}}).encode()
    url = f"{door.served.url}/files/main/digits/{door.run}/file_stream"
    for data, headers in ((gzip.compress(body), {"content-encoding": "gzip"}), (body, {})):
        assert httpx.post(url, content=data, headers=headers, timeout=PATIENCE_S).status_code == 200
    assert losses(door) == {0: 1}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[]", 400),
        (b'{"files": {"wandb-history.jsonl": {"offset": -1, "content": []}}}', 400),
        (b'{"files": {"wandb-history.jsonl": {"offset": 0, "content": "x"}}}', 400),
        (b'{"files": ' + b"[" * 100_000, 400),
        (b"x" * (17 << 20), 413),
    ],
)
def test_a_hostile_body_is_refused(door: Door, body: bytes, status: int) -> None:
    door.begin()
    url = f"{door.served.url}/files/main/digits/{door.run}/file_stream"
    assert httpx.post(url, content=body, timeout=PATIENCE_S).status_code == status


def test_a_body_that_grows_when_it_is_unpacked_is_refused(door: Door) -> None:
    door.begin()
    url = f"{door.served.url}/files/main/digits/{door.run}/file_stream"
    bomb = gzip.compress(b" " * (60 << 20))
    response = httpx.post(url, content=bomb, headers={"content-encoding": "gzip"}, timeout=PATIENCE_S)
    assert response.status_code == 413


def test_a_run_that_nobody_began_is_unknown(door: Door) -> None:
    send(door, rows(0, 1), status=404)


def test_a_run_that_was_deleted_takes_no_more(door: Door) -> None:
    door.begin()
    httpx.delete(f"{door.served.url}/api/v1/runs/{door.run}", headers=OF_PAGE, timeout=PATIENCE_S)
    send(door, rows(0, 1), status=410)
