"""Lists, counts, aggregates and the trash show what one may read, and nothing of another team."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.library.stored import hosts as stored_hosts
from tests.patience import PATIENCE_S, eventually
from tests.server.access.organisation import NOW, ServedOrganisation, served_organisation

MARK = "zebra"
"""A word that is in everything of the team vision, and in nothing of others."""
LISTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("projects", {}),
    ("runs", {"limit": 1000, "last": "*"}),
    ("runs", {"text": MARK}),
    ("runs", {"text": "ze"}),
    ("runs", {"tag": f"{MARK}-tag"}),
    ("runs", {"project": f"{MARK}-project"}),
    ("runs", {"entity": "vision"}),
    ("runs", {"author": "bob"}),
    ("runs", {"where": f"config.{MARK}_key > 0"}),
    ("runs", {"mongo_filter": f'{{"config.{MARK}_key": {{"$exists": true}}}}'}),
    ("runs", {"sort": f"config.{MARK}_key"}),
    ("runs", {"sort": "project", "descending": False}),
    ("runs", {"deleted": True}),
    ("runs", {"filter": f"tag:{MARK}-tag"}),
    ("runs", {"filter": f"host:{MARK}* -tag:other"}),
    ("runs", {"filter": f"note:{MARK}"}),
    ("runs", {"filter": f"-config.{MARK}_key<0"}),
    ("runs", {"sort": f"-config.{MARK}_key,project", "sparklines": "cpu"}),
    ("runs.csv", {}),
    ("runs.csv", {"filter": f"project:{MARK}*"}),
    ("runs/groups", {"by": ["project", "entity", "user", "state"]}),
    ("runs/groups", {"by": ["host", "tag"]}),
    ("fields/values", {}),
    ("fields/values", {"filter": MARK}),
    ("fields", {}),
    ("fields", {"text": MARK}),
    ("latest", {}),
    ("latest", {"project": f"{MARK}-project"}),
    ("aggregate", {"metric": "cpu", "group_by": "project"}),
    ("aggregate", {"metric": "cpu", "group_by": "run"}),
    ("aggregate", {"metric": "cpu", "group_by": "author"}),
    ("aggregate", {"metric": "cpu", "group_by": "entity"}),
    ("aggregate", {"metric": "cpu", "group_by": "host"}),
    ("hosts", {}),
    ("hosts", {"text": MARK}),
)


def envelope(run: str, mark: str, seq: int = 1) -> dict[str, Any]:
    """A sample and facts, with a word in all of them."""
    now_ms = time.time_ns() // 1_000_000
    facts = {
        "t": now_ms,
        "run": {"name": f"{mark}-name", "tags": [f"{mark}-tag"], "notes": f"{mark} notes"},
        "config": {f"{mark}_key": 1, "shared": 2},
        "summary": {f"{mark}_loss": 3},
    }
    return {
        "run": run,
        "writer": f"monitor.{mark}host.1",
        "seq": seq,
        "project": f"{mark}-project",
        "about": {"interval_s": 3600},
        "keys": ["cpu"],
        "t": [now_ms],
        "v": [[1.0]],
        "records": [[seq, "info", facts]],
    }


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    """Runs of both teams that were sent over HTTP; of vision's, one is in the trash."""
    with served_organisation(tmp_path_factory.mktemp("organisation")) as served:
        for run in (f"{MARK}-1", f"{MARK}-2"):
            sent(served, "bob", {**envelope(run, MARK), "entity": "vision"})
        sent(served, "otto", {**envelope("plain-1", "plain"), "entity": "speech"})
        deleted = served.ask("bob", "DELETE", f"/api/v1/runs/{MARK}-2")
        assert deleted.status_code == 200, deleted.text
        yield served


def sent(served: ServedOrganisation, who: str, value: dict[str, Any]) -> dict[str, Any]:
    response = served.ask(who, "POST", "/api/v1/ingest", json=value)
    assert response.status_code == 200, response.text
    ack: dict[str, Any] = response.json()
    return ack


def listed(served: ServedOrganisation, who: str | None, path: str, query: dict[str, Any]) -> httpx.Response:
    response = served.ask(who, "GET", f"/api/v1/{path}", params=query)
    assert response.status_code == 200, response.text
    return response


@pytest.mark.parametrize(("path", "query"), LISTS)
def test_nothing_of_another_team_is_in_a_list(
    marked: ServedOrganisation, path: str, query: dict[str, Any]
) -> None:
    assert MARK not in listed(marked, "otto", path, query).text


def test_lists_count_what_one_may_read(marked: ServedOrganisation) -> None:
    def runs(who: str, **query: Any) -> tuple[int, list[str]]:
        page = listed(marked, who, "runs", query).json()
        return page["total"], sorted(run["id"] for run in page["runs"])

    assert runs("otto", text="plain") == (1, ["plain-1"])
    assert runs("otto", text=MARK) == (0, [])
    assert runs("carol", text=MARK) == (1, [f"{MARK}-1"])
    assert runs("bob", text=MARK, deleted=True) == (1, [f"{MARK}-2"])
    assert runs("carol", text=MARK, deleted=True) == (0, [])  # bob's
    assert runs("alice", text=MARK, deleted=True) == (1, [f"{MARK}-2"])
    assert runs("vera", text=MARK) == (1, [f"{MARK}-1"])
    assert runs("rita", text=MARK) == (0, [])  # administers the organisation, and is in no team
    visible = {project["name"] for project in listed(marked, "otto", "projects", {}).json()}
    assert visible == {"plain-project", "voice", "organisation", "public", "open"}
    assert f"config.{MARK}_key" in listed(marked, "vera", "fields", {}).json()


def test_groups_summarise_what_one_may_read(marked: ServedOrganisation) -> None:
    def group(who: str) -> Any:
        query = {"columns": [f"config.{MARK}_key", "config.shared"], "filter": "tag:*-tag"}
        [group] = listed(marked, who, "runs/groups", query).json()["groups"]
        return group

    assert (group("otto")["runs"], group("bob")["runs"]) == (1, 1)
    assert group("otto")["columns"][f"config.{MARK}_key"] == {
        "n": 0,
        "min": None,
        "mean": None,
        "max": None,
        "sum": None,
    }
    assert group("bob")["columns"][f"config.{MARK}_key"]["n"] == 1
    assert group("otto")["columns"]["config.shared"]["mean"] == 2.0


def test_a_host_without_a_run_that_one_may_read_does_not_exist(marked: ServedOrganisation) -> None:
    def names(who: str) -> set[str]:
        return {host["name"] for host in listed(marked, who, "hosts", {}).json()["hosts"]}

    assert f"{MARK}host" in names("bob")
    assert {"plainhost"} == {name for name in names("otto") if name.endswith("host")}
    for rest in ("", "/metrics"):
        assert marked.ask("bob", "GET", f"/api/v1/hosts/{MARK}host{rest}").status_code == 200
        hidden = marked.ask("otto", "GET", f"/api/v1/hosts/{MARK}host{rest}")
        missing = marked.ask("otto", "GET", f"/api/v1/hosts/no-such-host{rest}")
        assert hidden.status_code == missing.status_code == 404
        assert hidden.text.replace(f"{MARK}host", "") == missing.text.replace("no-such-host", "")


def test_a_host_of_two_teams_shows_to_each_its_own_runs(
    marked: ServedOrganisation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_hosts, "_FRESH_MS", 0)
    for who, run, entity in (("bob", f"{MARK}-shared", "vision"), ("otto", "plain-shared", "speech")):
        value = envelope(run, MARK if who == "bob" else "plain")
        value["about"] = {**value["about"], "role": "monitor", "host": "both"}
        sent(
            marked,
            who,
            {**value, "writer": f"monitor.both.{run}", "entity": entity, "v": [[float(len(run))]]},
        )
    for who, run in (("bob", f"{MARK}-shared"), ("otto", "plain-shared")):
        page = listed(marked, who, "hosts", {"text": "both"}).json()
        [host] = [host for host in page["hosts"] if host["name"] == "both"]
        assert [one["id"] for one in host["runs"]] == [run]
        assert host["cpu"] == float(len(run))
        detail = listed(marked, who, "hosts/both", {}).json()
        assert [one["id"] for one in detail["runs"]] == [run]
    assert MARK not in listed(marked, "otto", "hosts/both/metrics", {"keys": "cpu"}).text


def test_a_run_that_one_may_not_read_is_compared_like_one_that_does_not_exist(
    marked: ServedOrganisation,
) -> None:
    def compared(who: str, *runs: str) -> dict[str, Any]:
        body: dict[str, Any] = listed(marked, who, "compare", {"runs": runs}).json()
        return body

    own = compared("bob", f"{MARK}-1", "no-such-run")
    assert ([run["id"] for run in own["runs"]], own["missing"]) == ([f"{MARK}-1"], ["no-such-run"])
    assert [fact["name"] for fact in own["facts"] if fact["section"] == "config"] == [f"{MARK}_key", "shared"]
    other = compared("otto", "plain-1", f"{MARK}-1")
    assert ([run["id"] for run in other["runs"]], other["missing"]) == (["plain-1"], [f"{MARK}-1"])
    assert MARK not in str({**other, "missing": []})
    assert compared("otto", f"{MARK}-1") == {
        "runs": [],
        "missing": [f"{MARK}-1"],
        "facts": [],
        "left_out": 0,
        "statistics": [],
        "goal": None,
    }


def test_pages_of_one_run_each_add_up(marked: ServedOrganisation) -> None:
    for who in ("otto", "carol", "ci"):
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 1, "sort": "name"}
        while True:
            page = listed(marked, who, "runs", query).json()
            seen += [run["id"] for run in page["runs"]]
            if page["next"] is None:
                break
            query["after"] = page["next"]
        assert len(seen) == len(set(seen)) == page["total"]


def test_the_same_run_id_in_two_teams_over_http(marked: ServedOrganisation) -> None:
    for who, mark, entity in (("bob", "ours", "vision"), ("otto", "theirs", "speech")):
        sent(marked, who, {**envelope("twin", mark), "entity": entity})
    assert marked.ask("bob", "GET", "/api/v1/runs/twin").json()["name"] == "ours-name"
    assert marked.ask("otto", "GET", "/api/v1/runs/twin").json()["name"] == "theirs-name"
    added = marked.ask("otto", "GET", "/api/v1/runs/twin", params={"entity": "vision"})
    assert added.status_code == 404
    marked.accounts.members.add("speech", "carol", "member", CLI, NOW)
    marked.rights_changed()
    both = marked.ask("carol", "GET", "/api/v1/runs/twin")
    assert both.status_code == 409
    assert "speech, vision each have a run 'twin'" in both.json()["error"]
    for entity, name in (("vision", "ours-name"), ("speech", "theirs-name")):
        response = marked.ask("carol", "GET", "/api/v1/runs/twin", params={"entity": entity})
        assert response.json()["name"] == name
    marked.accounts.members.remove("speech", "carol", CLI, NOW)


def test_a_key_that_was_revoked_sends_no_more(marked: ServedOrganisation) -> None:
    accounts = marked.accounts
    secret, key = accounts.keys.create("lost", CLI, NOW, user_id=marked.users["bob"])
    headers = {"authorization": f"Bearer {secret}"}

    def status(seq: int) -> int:
        value = {**envelope(f"{MARK}-1", MARK, seq), "entity": "vision", "writer": "w"}
        return httpx.post(
            f"{marked.url}/api/v1/ingest", json=value, headers=headers, timeout=PATIENCE_S
        ).status_code

    assert status(1) == 200
    accounts.keys.revoke(key.id, CLI, NOW)
    eventually(lambda: status(2) == 401)


def test_a_user_who_lost_the_right_sends_no_more(marked: ServedOrganisation) -> None:
    sent(marked, "carol", {**envelope("of-carol", MARK), "entity": "vision"})
    marked.accounts.members.set_role("vision", "carol", "viewer", CLI, NOW)

    def answer() -> httpx.Response:
        sample = {**envelope("of-carol", MARK, 2), "entity": "vision", "records": []}
        return marked.ask("carol", "POST", "/api/v1/ingest", json=sample)

    eventually(lambda: answer().status_code == 403)
    assert answer().json()["error"] == f"carol may look at vision/{MARK}-project, not log to it"
    marked.accounts.members.set_role("vision", "carol", "member", CLI, NOW)
    eventually(lambda: answer().status_code == 200)


def test_a_stop_is_told_to_who_may_write_the_run_only(marked: ServedOrganisation) -> None:
    sent(marked, "bob", {**envelope("stopped", MARK), "entity": "vision"})
    assert marked.ask("bob", "POST", "/api/v1/runs/stopped/stop").status_code == 200
    sample = {**envelope("stopped", MARK, 2), "entity": "vision", "records": []}
    eventually(lambda: sent(marked, "bob", sample)["stop"] is True)
    refused = marked.ask("otto", "POST", "/api/v1/ingest", json=sample)
    assert (refused.status_code, "stop" in refused.json()) == (403, False)
    own = sent(marked, "otto", {**sample, "entity": "speech"})
    assert own["stop"] is False
