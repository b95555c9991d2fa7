"""Summaries come back in the form in which clients sent them; our lists show their values by dotted name."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from runvitals.server.doors.wandb.summaries import (
    FORM,
    OUTDATED,
    SUMMARY,
    changed_summary,
    edited_summary,
    leaves,
    summary_of,
)
from runvitals.server.runs.storage.search_columns import DELETED, LOGGED
from runvitals.server.runs.storage.sections import RunSections
from tests.patience import PATIENCE_S, eventually
from tests.server.doors.wandb.conftest import Door
from tests.server.doors.wandb.test_client import environment
from tests.server.serving import Served

SCRIPT = Path(__file__).with_name("summary_client.py")
SUMMARY_QUERY = (
    'query Q($p: String) { project(name: $p, entityName: "main") { run(name: "%s") { summaryMetrics } } }'
)


@pytest.fixture(scope="module")
def results(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("summaries")
    done = subprocess.run(
        [sys.executable, SCRIPT, "forms"],
        env=environment(served, folder),
        cwd=folder,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


FIRST = {
    "_step": 2,
    "acc": {"max": 3},
    "x": {"last": 2, "min": 1, "max": 3},
    "net": {"a": 2, "b": {"c": 2}},
    "d": {"x": 1},
    "empty": {},
    "list": [1, {"a": 2}],
    "inf": "Infinity",
    "dotted.name": 1,
}


def test_a_summary_is_read_as_it_was_written(results: Any) -> None:
    assert results["first"] == FIRST


def test_runs_are_found_by_the_form_and_by_the_name(results: Any) -> None:
    assert results["filters"] == [1, 1, 1, 0]


def test_a_process_that_resumes_goes_on_from_it(results: Any) -> None:
    assert results["resumed"] == {"acc": {"max": 3}, "d": {"x": 1}}
    assert results["second"] == {**FIRST, "_step": 3, "x": results["second"]["x"]}
    assert set(results["second"]["x"]) == {"last", "min", "max"}


def test_edits_change_nothing_else(results: Any) -> None:
    expected = {**results["second"], "new": {"k": {"m": 1}}, "d": {"x": 7}}
    del expected["list"]
    assert results["edited"] == expected
    assert results["edited again"] == {**expected, "new": {"k": {"m": 2}}}


def test_our_lists_show_the_values_by_dotted_name(served: Served, results: Any) -> None:
    summary = Door(served, "forms").shown()["summary"]
    assert summary["x"] == results["second"]["x"]["last"]
    assert (summary["net.b.c"], summary["d.x"], summary["new.k.m"], summary["dotted.name"]) == (2, 7, 2, 1)
    assert not summary.keys() & {"post", "none", "gone", "list"}
    page = httpx.get(f"{served.url}/api/v1/runs", params={"filter": "summary.acc.max>2"}, timeout=PATIENCE_S)
    assert [run["id"] for run in page.json()["runs"]] == ["forms"]


def send(door: Door, headers: dict[str, str] | None = None, **files: Any) -> None:
    sent = {
        "wandb-history.jsonl": files.get("rows"),
        "wandb-summary.json": files.get("summary") and [files["summary"]],
    }
    body = {
        "files": {
            name: {"offset": files.get("offset", 0), "content": [json.dumps(line) for line in lines]}
            for name, lines in sent.items()
            if lines
        }
    }
    url = f"{door.served.url}/files/main/digits/{door.run}/file_stream"
    assert httpx.post(url, json=body, headers=headers, timeout=PATIENCE_S).status_code == 200


def read(door: Door) -> Any:
    query = SUMMARY_QUERY % door.run
    return json.loads(door.graphql(query, p="digits")["data"]["project"]["run"]["summaryMetrics"])


def test_rows_without_a_summary_count_more_than_an_earlier_one(door: Door) -> None:
    door.begin()
    send(
        door,
        rows=[{"_step": 0, "loss": 2.0, "net": {"a": 1}}],
        summary={"loss": {"min": 2.0}, "net": {"a": 1}},
    )
    assert read(door) == {"loss": {"min": 2.0}, "net": {"a": 1}}
    send(door, offset=1, rows=[{"_step": 1, "net": {"a": 5}, "late": 3}])
    assert read(door) == {"loss": {"min": 2.0}, "net": {"a": 5}, "late": 3}
    send(door, offset=0, summary={"loss": {"min": 1.0}})
    assert read(door) == {"loss": {"min": 1.0}}
    eventually(lambda: door.shown()["summary"] == {"loss": 1.0, "loss.min": 1.0})


def test_keys_of_the_history_have_the_last_values(door: Door) -> None:
    """`wandb verify` compares them with what it logged."""
    door.begin()
    send(
        door,
        rows=[{"_step": 0, "loss": 2.0, "net": {"a": 1}, "text": "x"}],
        summary={"loss": {"min": 2.0}, "net": {"a": 1}, "text": "x"},
    )
    query = f'query($p: String) {{ project(name: $p) {{ run(name: "{door.run}") {{ historyKeys }} }} }}'
    keys = door.graphql(query, p="digits")["data"]["project"]["run"]["historyKeys"]
    assert keys["lastStep"] == 0
    assert {name: key.get("previousValue") for name, key in keys["keys"].items()} == {
        "loss": None,
        "net.a": 1,
        "text": None,
    }


def test_a_client_that_was_killed_early_goes_on_after_its_rows(door: Door) -> None:
    """Its only summary was sent before the values were in it."""
    door.begin()
    send(
        door,
        rows=[{"_step": step, "loss": 2.0 - step} for step in range(2)],
        summary={"_wandb": {"runtime": 0}},
    )
    assert read(door) == {"_wandb": {"runtime": 0}, "loss": 1.0}
    query = "query($p: String, $r: String!) { model(name: $p) { bucket(name: $r) { historyTail } } }"
    data = door.graphql(query, p="digits", r=door.run)["data"]
    assert [json.loads(row) for row in json.loads(data["model"]["bucket"]["historyTail"])] == [{"_step": 1}]


def test_of_several_clients_none_deletes_what_others_sent(door: Door) -> None:
    clients = [{"x-wandb-async-client-id": name} for name in ("a", "b")]
    for number, client in enumerate(clients):
        door.begin({"x-wandb-client-id": client["x-wandb-async-client-id"]})
        send(door, client, summary={f"of {number}": {"max": number}})
    assert read(door) == {"of 0": {"max": 0}, "of 1": {"max": 1}}


def test_what_is_logged_again_after_it_was_deleted_comes_back(door: Door) -> None:
    door.begin()
    for step, summary in enumerate(({"loss": 1.0}, {"other": 1}, {"loss": 3.0, "other": 1})):
        send(door, offset=step, rows=[{"_step": step, "loss": 1.0 + step}])
        send(door, summary=summary)
        assert read(door) == summary
        eventually(partial(lambda expected: door.shown()["summary"] == expected, summary))


def sections(**shared: dict[str, Any]) -> RunSections:
    return RunSections({name.replace("own", "wandb"): values for name, values in shared.items()})


def merged(stored: RunSections, changes: Any) -> RunSections:
    shared = {name: dict(values) for name, values in stored.shared.items()}
    for name, keys in changes.removed.items():
        for key in keys:
            shared.get(name, {}).pop(key, None)
    for name, values in changes.sections.items():
        shared.setdefault(name, {}).update(values)
    return RunSections(shared)


def test_names_of_values_are_those_of_rows() -> None:
    long = "n" * 5000
    assert leaves({"a": {"b": {long: 1}}, "m": {"mean": 2, "min": 1}, "_own": 1}).keys().isdisjoint({"_own"})
    assert {name: leaf.value for name, leaf in leaves({"m": {"min": 1, "last": 2}}).items()} == {
        "m": 2, "m.min": 1, "m.last": 2,
    }  # fmt: skip


def test_runs_from_before_forms_were_kept_read_as_they_did() -> None:
    stored = sections(own={"summary": {"_step": 3}}, summary={"net.a": 1}, logged={"net.a": 0, "loss": 2.0})
    assert summary_of(stored) == {"_step": 3, "net.a": 1, "loss": 2.0}


def test_what_others_set_or_removed_counts_more() -> None:
    stored = merged(sections(), changed_summary(sections(), {"net": {"a": 1, "b": 2}, "x": {"max": 3}}))
    stored.shared[SUMMARY] |= {"net.a": 9, "free": {"k": 1}}
    del stored.shared[SUMMARY]["net.b"]
    assert summary_of(stored) == {"net": {"a": 9}, "x": {"max": 3}, "free": {"k": 1}}
    edited = merged(stored, edited_summary(stored, {"x": {"max": 3}, "free": {"k": 2}}))
    assert summary_of(edited) == {"x": {"max": 3}, "free": {"k": 2}}
    assert edited.shared[DELETED] == {"net.a": True}


def test_sending_back_what_was_read_changes_nothing() -> None:
    stored = merged(sections(), changed_summary(sections(), {"nan": float("nan"), "in": {"f": float("inf")}}))
    stored = RunSections({**stored.shared, LOGGED: {"other": 1.0}})
    changes = edited_summary(stored, {"nan": "NaN", "in": {"f": "Infinity"}})
    assert FORM not in changes.sections or changes.sections[FORM].keys() == {"nan"}
    assert str(summary_of(merged(stored, changes))) == "{'nan': nan, 'in': {'f': inf}}"


def test_rows_mark_a_summary_as_outdated_until_the_next_one() -> None:
    stored = sections(own={OUTDATED: True}, **{FORM: {"a": 1}})
    assert changed_summary(stored, {"a": 1}).sections["wandb"] == {OUTDATED: False}
