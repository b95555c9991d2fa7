"""The audit log, over HTTP and as a file."""

from __future__ import annotations

import json
from pathlib import Path

from runvitals.server.audit.audit_file import AuditFile
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer


def test_who_reads_which_events(vision: AccountsServer) -> None:
    vision.ask("ada", "PATCH", "teams/vision", json={"company": "Example"})
    everything = vision.ask("olga", "GET", "organisation/audit?limit=1000")
    assert everything["events"][0]["action"] == "team.update"
    assert everything["events"][0] | {"id": 0} == {
        "id": 0,
        "time_ms": T0,
        "action": "team.update",
        "outcome": "ok",
        "actor_kind": "user",
        "actor_name": "ada",
        "via": "session",
        "key_public_id": None,
        "ip": "127.0.0.1",
        "agent": everything["events"][0]["agent"],
        "request_id": everything["events"][0]["request_id"],
        "entity": "vision",
        "project": None,
        "run": None,
        "target": None,
        "before": {"company": ""},
        "after": {"company": "Example"},
    }
    of_team = vision.ask("ada", "GET", "teams/vision/audit")
    assert {event["entity"] for event in of_team["events"]} == {"vision"}
    own = vision.ask("ada", "GET", "account/audit")
    assert [event["action"] for event in own["events"]] == ["team.update", "user.create"]
    vision.ask("ada", "GET", "organisation/audit", 403)
    vision.ask("bob", "GET", "teams/vision/audit", 403)
    vision.ask("mallory", "GET", "teams/vision/audit", 404)


def test_a_cursor_that_no_page_has_is_rejected(vision: AccountsServer) -> None:
    for cursor in ("x", "9223372036854775808", "99999999999999999999"):
        response = vision.ask("olga", "GET", f"organisation/audit?after={cursor}", 422)
        assert "expected `next` of the previous page" in response["error"]


def test_filters_and_pages(vision: AccountsServer) -> None:
    first = vision.ask("olga", "GET", "organisation/audit?action=user.*&limit=2")
    second = vision.ask("olga", "GET", f"organisation/audit?action=user.*&limit=1000&after={first['next']}")
    assert len(first["events"]) == 2
    assert first["total"] == len(first["events"]) + len(second["events"])
    assert second["next"] is None
    for query, expected in (
        ("action=team.create", 1),
        ("entity=vision&action=team.member_add", 2),
        ("actor=nobody", 0),
        (f"from={T0 + 1}", 0),
        (f"to={T0}", 0),
        ("outcome=denied", 0),
    ):
        assert vision.ask("olga", "GET", f"organisation/audit?{query}")["total"] == expected, query
    vision.ask("olga", "GET", "organisation/audit?action=t*m", 422)
    vision.ask("olga", "GET", "organisation/audit?limit=1001", 422)


def test_lines_and_tables(vision: AccountsServer) -> None:
    with vision.client("olga") as olga:
        lines = olga.get("organisation/audit?format=jsonl&limit=2")
        table = olga.get("organisation/audit?format=csv")
    events = [json.loads(line) for line in lines.text.splitlines()]
    assert len(events) == 2
    assert lines.headers["runvitals-next"] == str(events[-1]["id"])
    assert table.text.splitlines()[0].startswith("id,time_ms,action,outcome,actor_kind")
    assert "runvitals-next" not in table.headers


def test_a_file_of_all_events(vision: AccountsServer, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = vision.accounts.audit

    def names() -> list[str]:
        return [json.loads(line)["action"] for line in path.read_text().splitlines()]

    file = AuditFile(str(path), audit, vision.clock)
    vision.accounts.teams.update("vision", CLI, T0, company="A")
    file.write_new()
    assert names() == ["team.update"]  # events from before the file are not in it
    assert path.stat().st_mode & 0o077 == 0
    vision.accounts.teams.update("vision", CLI, T0, hidden=True)
    resumed = AuditFile(str(path), audit, vision.clock)
    assert resumed.write_new() == 1
    assert resumed.write_new() == 0
    path.rename(tmp_path / "audit.old")
    vision.clock.now_ms += 120_000
    vision.accounts.teams.update("vision", CLI, vision.clock(), company="B")
    assert resumed.write_new() == 1
    vision.clock.now_ms += 120_000
    assert resumed.write_new() == 0
    assert names() == ["team.update"]


def test_a_line_that_a_crash_cut_off_is_written_again(vision: AccountsServer, tmp_path: Path) -> None:
    path, audit = tmp_path / "audit.jsonl", vision.metadata_store.accounts.audit
    file = AuditFile(str(path), audit, vision.clock)
    for company in ("A", "B"):
        vision.accounts.teams.update("vision", CLI, T0, company=company)
    assert file.write_new() == 2
    path.write_bytes(path.read_bytes()[:-20])
    assert AuditFile(str(path), audit, vision.clock).write_new() == 1
    first, cut_off, again = path.read_text().splitlines()
    assert [json.loads(line)["after"] for line in (first, again)] == [{"company": "A"}, {"company": "B"}]
    assert json.loads(again)["id"] == json.loads(first)["id"] + 1
    assert cut_off == again[:-19]


def test_no_event_is_repeated_after_a_restart(vision: AccountsServer, tmp_path: Path) -> None:
    path, audit = tmp_path / "audit.jsonl", vision.accounts.audit

    def add(count: int, time_ms: int) -> None:
        def work() -> None:
            for number in range(count):
                audit.record(time_ms, CLI, "team.update", target="x" * 200, after={"number": number})

        vision.accounts.in_one_transaction(work)

    file = AuditFile(str(path), audit, vision.clock)
    add(3000, T0)
    assert file.write_new() == 3000
    lines = path.read_text().splitlines(keepends=True)
    assert len("".join(lines)) > 1 << 20
    path.write_text("".join([*lines[1:], lines[0]]))  # the first one was committed last
    assert AuditFile(str(path), audit, vision.clock).write_new() == 0
    vision.clock.now_ms += 120_000
    add(2, vision.clock())
    resumed = AuditFile(str(path), audit, vision.clock)
    assert resumed.write_new() == 2
    assert AuditFile(str(path), audit, vision.clock).write_new() == 0
    ids = [json.loads(line)["id"] for line in path.read_text().splitlines()]
    assert len(ids) == len(set(ids)) == 3002


def test_where_the_audit_log_is_sent(vision: AccountsServer) -> None:
    path = "organisation/audit/webhook"
    assert vision.ask("olga", "GET", path) == {"url": None}
    vision.ask("ada", "PUT", path, 403, json={"url": "https://logs.example/audit"})
    vision.ask("olga", "POST", f"{path}/test", 409, json={})
    for url in ("http://logs.example/", "https://127.0.0.1/", "https://10.1.2.3/", "https://[::1]/", "logs"):
        assert list(vision.ask("olga", "PUT", path, 422, json={"url": url})["fields"]) == ["url"]
    url = "https://logs.invalid/audit?token=hush"
    set_up = vision.ask("olga", "PUT", path, json={"url": url})
    assert len(set_up["secret"]) == 43
    shown = vision.ask("olga", "GET", path)
    assert "secret" not in shown
    assert (shown["url"], shown["delivered_ms"]) == (url, None)
    assert "could not be sent" in vision.ask("olga", "POST", f"{path}/test", 502, json={})["error"]
    assert vision.ask("olga", "PUT", path, json={"url": url})["secret"] != set_up["secret"]
    vision.ask("olga", "DELETE", path, 204)
    assert vision.ask("olga", "GET", path) == {"url": None}
    events = vision.ask("olga", "GET", "organisation/audit?action=org.audit_webhook")["events"]
    assert [event["after"] for event in events] == [None, *[{"url": "logs.invalid"}] * 2]
