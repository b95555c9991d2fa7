"""Comments on reports: who may write, change, delete and resolve them, and who is notified."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.server.alerts.delivery.automation_thread import AutomationThread
from runvitals.server.alerts.delivery.channel import DeliveryFailed
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create, panels, text

Report = dict[str, Any]


@pytest.fixture
def report(digits: AccountsServer) -> dict[str, Any]:
    """A published report of bob."""
    return create(digits, blocks=[text("aaaa", "One"), panels()], publish=True)


def comment(
    server: AccountsServer,
    by: str,
    report: Report,
    words: str = "Why?",
    status: int = 201,
    **how: Any,
) -> Any:
    """A new comment."""
    return server.ask(by, "POST", f"reports/{report['id']}/comments", status, json={"text": words, **how})


def listed(server: AccountsServer, by: str, report: Report) -> list[dict[str, Any]]:
    """The comments on a report."""
    comments: list[dict[str, Any]] = server.ask(by, "GET", f"reports/{report['id']}/comments")["comments"]
    return comments


def notified(server: AccountsServer, name: str) -> list[tuple[str, str]]:
    """What the bell of a user shows."""
    answer = server.ask(name, "GET", "account/notifications")
    return [(item["kind"], item["title"]) for item in answer["notifications"]]


def test_threads_are_about_a_block_or_a_point_of_a_panel(digits: AccountsServer, report: Report) -> None:
    first = comment(digits, "eve", report, "A *spike*", block="grid", panel="grid1", x=120.5)
    assert (first["author"], first["panel"], first["x"]) == ("eve", "grid1", 120.5)
    assert first["html"] == "<p>A <em>spike</em></p>\n"
    reply = comment(digits, "bob", report, "Yes", reply_to=first["id"])
    again = comment(digits, "ada", report, "No", reply_to=reply["id"])
    assert (again["reply_to"], again["panel"]) == (first["id"], "grid1")
    assert [one["id"] for one in listed(digits, "ada", report)] == [first["id"], reply["id"], again["id"]]
    for wrong in ({"block": "none"}, {"panel": "none"}, {"x": 1}, {"text": " "}, {"text": "x" * 10_001}):
        comment(digits, "bob", report, status=422, **wrong)
    comment(digits, "bob", report, status=404, reply_to=10**9)
    other = create(digits, publish=True)
    comment(digits, "bob", other, status=404, reply_to=first["id"])


def test_own_comments_are_changed_and_administrators_delete_any(
    digits: AccountsServer, report: Report
) -> None:
    mine = comment(digits, "eve", report)
    path = f"reports/{report['id']}/comments/{mine['id']}"
    for name in ("bob", "ada"):
        digits.ask(name, "PATCH", path, 403, json={"text": "Other"})
    changed = digits.ask("eve", "PATCH", path, json={"text": "How?"})
    assert (changed["text"], changed["changed_ms"] is None) == ("How?", False)
    digits.ask("bob", "DELETE", path, 403)  # his report, her comment
    digits.ask("ada", "DELETE", path, 204)
    assert listed(digits, "eve", report) == []
    assert digits.actions(action="report.comment*", outcome="ok") == ["report.comment_delete"]


def test_a_deleted_comment_leaves_its_place_for_replies(digits: AccountsServer, report: Report) -> None:
    first = comment(digits, "eve", report, "secret words")
    reply = comment(digits, "bob", report, "Yes", reply_to=first["id"])
    digits.ask("eve", "DELETE", f"reports/{report['id']}/comments/{first['id']}", 204)
    emptied, kept = listed(digits, "bob", report)
    assert (emptied["text"], emptied["author"], kept["id"]) == ("", None, reply["id"])
    digits.ask("eve", "PATCH", f"reports/{report['id']}/comments/{first['id']}", 403, json={"text": "x"})


def test_threads_are_resolved_by_who_began_them_or_may_change_the_report(
    digits: AccountsServer, report: Report
) -> None:
    first = comment(digits, "ada", report)
    reply = comment(digits, "eve", report, reply_to=first["id"])
    path = f"reports/{report['id']}/comments"
    digits.ask("eve", "PUT", f"{path}/{first['id']}/resolved", 403)
    digits.ask("ada", "PUT", f"{path}/{reply['id']}/resolved", 409)
    for name in ("bob", "ada"):
        digits.ask(name, "PUT", f"{path}/{first['id']}/resolved", 204)
        assert listed(digits, "eve", report)[0]["resolved_by"] == name
        digits.ask(name, "DELETE", f"{path}/{first['id']}/resolved", 204)
        assert listed(digits, "eve", report)[0]["resolved_ms"] is None


def test_reactions_are_counted(digits: AccountsServer, report: Report) -> None:
    first = comment(digits, "ada", report)
    path = f"reports/{report['id']}/comments/{first['id']}/reactions"
    for name in ("eve", "eve", "bob"):
        digits.ask(name, "PUT", f"{path}/👍", 204)
    digits.ask("eve", "PUT", f"{path}/❤️", 204)
    digits.ask("eve", "PUT", f"{path}/<script>", 422)
    reactions = listed(digits, "eve", report)[0]["reactions"]
    assert reactions == [
        {"emoji": "👍", "count": 2, "mine": True},
        {"emoji": "❤", "count": 1, "mine": True},
    ]
    digits.ask("eve", "DELETE", f"{path}/👍", 204)
    assert listed(digits, "eve", report)[0]["reactions"][0] == {"emoji": "👍", "count": 1, "mine": False}


def test_strangers_neither_read_nor_write_comments(digits: AccountsServer, report: Report) -> None:
    first = comment(digits, "ada", report)
    path = f"reports/{report['id']}/comments"
    digits.ask("mallory", "GET", path, 404)
    comment(digits, "mallory", report, status=404)
    digits.ask("mallory", "PUT", f"{path}/{first['id']}/reactions/👍", 404)
    digits.ask(None, "GET", path, 401)
    draft = create(digits)
    comment(digits, "ada", draft, status=404)


def test_who_is_notified_of_comments(digits: AccountsServer, report: Report) -> None:
    digits.ask("ada", "PUT", f"reports/{report['id']}/follow", 204)
    comment(digits, "eve", report, "Look, @ada and @mallory")
    assert notified(digits, "bob")[0] == ("report.commented", "[vision/digits] eve commented on “Rates”")
    assert notified(digits, "ada")[0] == (
        "report.mentioned",
        "[vision/digits] eve mentions you in a comment on “Rates”",
    )
    assert notified(digits, "eve") == []
    assert notified(digits, "mallory") == []
    [shown] = listed(digits, "bob", report)
    assert (
        shown["html"]
        == '<p>Look, <a href="/ada" rel="nofollow noopener noreferrer ugc">@ada</a> and @mallory</p>\n'
    )
    comment(digits, "bob", report, "Thanks", reply_to=shown["id"])
    assert notified(digits, "eve")[0] == ("report.commented", "[vision/digits] bob commented on “Rates”")


def test_followers_are_notified_when_a_report_is_published_anew(
    digits: AccountsServer, report: Report
) -> None:
    path = f"reports/{report['id']}"
    digits.ask("ada", "PUT", f"{path}/follow", 204)
    blocks = [text("aaaa", "One, thanks to @eve")]
    digits.ask("bob", "PATCH", path, json={"revision": 1, "blocks": blocks})
    assert notified(digits, "ada") == []
    digits.ask("bob", "POST", f"{path}/publish", json={"revision": 2})
    assert notified(digits, "ada")[0] == ("report.published", "[vision/digits] bob published “Rates”")
    assert notified(digits, "eve")[0][0] == "report.mentioned"


def test_nobody_hears_of_what_they_may_not_read_any_more(digits: AccountsServer, report: Report) -> None:
    digits.ask("eve", "PUT", f"reports/{report['id']}/follow", 204)
    comment(digits, "ada", report)
    assert len(notified(digits, "eve")) == 1
    digits.ask("ada", "DELETE", "teams/vision/members/eve", 204)
    assert notified(digits, "eve") == []
    comment(digits, "ada", report, "More")
    with digits.metadata_store.accounts._database.read() as connection:
        assert connection is not None
    assert digits.accounts.report_readers.followers(report["id"]) == []


def test_what_waits_for_a_digest_is_one_message(digits: AccountsServer, report: Report) -> None:
    digits.ask("bob", "PUT", "account/alerts", json={"digest": "hourly"})
    comment(digits, "eve", report, "First")
    comment(digits, "ada", report, "Second")
    outbox = digits.metadata_store.alerts.outbox
    [waiting] = outbox.beginning_with([f"report:{report['id']}:comment"])
    assert waiting.next_ms == (digits.clock() // 3_600_000 + 1) * 3_600_000
    assert "First" in waiting.text
    assert "Second" in waiting.text


def test_what_a_deleted_user_wrote_stays_without_a_name(digits: AccountsServer, report: Report) -> None:
    comment(digits, "eve", report, "Kept")
    digits.ask("eve", "PUT", f"reports/{report['id']}/star", 204)
    eve = digits.accounts.users.by_name("eve")
    digits.accounts.users.delete(eve.id, CLI, digits.clock())
    [kept] = listed(digits, "bob", report)
    assert (kept["text"], kept["author"], kept["author_name"]) == ("Kept", None, "deleted user")
    bob = digits.accounts.users.by_name("bob")
    digits.accounts.users.delete(bob.id, CLI, digits.clock())
    read = digits.ask("ada", "GET", f"reports/{report['id']}")
    assert (read["author"], read["title"]) == (None, "Rates")
    assert digits.ask("ada", "GET", f"reports/{report['id']}/versions")["versions"][0]["author"] is None


def test_news_are_not_sent_to_who_may_not_read_the_report_any_more(
    digits: AccountsServer, report: Report
) -> None:
    digits.ask("eve", "PUT", f"reports/{report['id']}/follow", 204)
    comment(digits, "ada", report)
    outbox, eve = digits.metadata_store.alerts.outbox, digits.accounts.users.by_name("eve")
    [due] = [one for one in outbox.due(digits.clock()) if one.target == f"user:{eve.id}"]
    digits.ask("ada", "DELETE", "teams/vision/members/eve", 204)
    digits.app.services.access.rights_changed()
    with pytest.raises(DeliveryFailed, match="may not read the report"):
        digits.app.services.channels.by_target["user"](due)


@pytest.mark.parametrize("event", ["report.published", "report.commented"])
def test_automations_react_to_reports(digits: AccountsServer, report: Report, event: str) -> None:
    automation = {
        "name": "news",
        "event": {"kind": event, "title": "^Rates"},
        "filter": {"projects": ["digits"]},
        "actions": [{"kind": "mail", "members": ["ada"]}],
    }
    digits.ask("ada", "POST", "teams/vision/automations", 201, json=automation)
    create(digits, title="Depths", publish=True)
    create(digits, title="Rates again", publish=True)
    for _ in range(2):
        comment(digits, "eve", report)
    digits.app.services.access.rights_changed()
    thread = AutomationThread(digits.metadata_store, digits.app.services.access.directory, digits.clock)
    thread.react()
    sent = digits.metadata_store.alerts.outbox.of_team(digits.accounts.teams.by_name("vision").id, 10)
    titles = [one.text.splitlines()[0] for one in sent]
    expected = {
        "report.published": ["[vision/digits] bob published “Rates again”"],
        "report.commented": ["[vision/digits] eve commented on “Rates”"] * 2,
    }
    assert titles == expected[event]
    assert sent[0].payload["path"].startswith("/vision/digits/reports/Rates")


def test_automations_about_reports_have_no_filter_for_runs(digits: AccountsServer) -> None:
    automation = {
        "name": "news",
        "event": {"kind": "report.published"},
        "filter": {"run_name": "x"},
        "actions": [{"kind": "mail", "members": ["ada"]}],
    }
    assert "run" in str(digits.ask("ada", "POST", "teams/vision/automations", 422, json=automation))
