"""Drafts, published reports, and changes of two people."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.model.durations import DAY_MS
from runvitals.server.background.account_trash import AccountTrash
from runvitals.server.reports.storage.rows import UnknownReport
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import REPORTS, create, panels, text


def test_a_draft_is_its_authors_until_it_is_published(digits: AccountsServer) -> None:
    report = create(digits)
    assert (report["state"], report["slug"], report["author"]) == ("draft", "Rates", "bob")
    assert report["html"]["aaaa"] == "<h2>One</h2>\n"
    for name in ("ada", "eve", "mallory"):
        digits.ask(name, "GET", f"reports/{report['id']}", 404)
    assert digits.ask("ada", "GET", REPORTS)["reports"] == []
    digits.ask("bob", "POST", f"reports/{report['id']}/publish", json={"revision": 1})
    for name in ("ada", "eve"):
        assert digits.ask(name, "GET", f"reports/{report['id']}")["title"] == "Rates"
        assert [each["id"] for each in digits.ask(name, "GET", REPORTS)["reports"]] == [report["id"]]
    digits.ask("mallory", "GET", f"reports/{report['id']}", 404)


def test_readers_see_what_was_published_and_editors_the_working_copy(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    path = f"reports/{report['id']}"
    changed = digits.ask("bob", "PATCH", path, json={"revision": 1, "title": "Better rates"})
    assert (changed["revision"], changed["published_revision"], changed["unpublished_changes"]) == (
        2,
        1,
        True,
    )
    read = digits.ask("eve", "GET", path)
    assert (read["title"], read["revision"], read["unpublished_changes"]) == ("Rates", 1, False)
    digits.ask("eve", "GET", f"{path}?draft=1", 403)
    assert digits.ask("bob", "GET", f"{path}?draft=1")["title"] == "Better rates"
    assert digits.ask("eve", "GET", REPORTS)["reports"][0]["title"] == "Rates"


def test_changes_of_two_people_to_other_blocks_are_merged(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    path = f"reports/{report['id']}"
    first = [text("aaaa", "# ONE"), text("bbbb", "two")]
    second = [text("aaaa", "# One"), text("cccc", "between"), text("bbbb", "TWO")]
    digits.ask("bob", "PATCH", path, json={"revision": 1, "blocks": first})
    merged = digits.ask("ada", "PATCH", path, json={"revision": 1, "blocks": second})
    assert [block["text"] for block in merged["blocks"]] == ["# ONE", "between", "TWO"]
    assert (merged["revision"], merged["others"]) == (3, ["aaaa"])


def test_changes_of_two_people_to_one_block_are_a_conflict(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    path = f"reports/{report['id']}"
    for revision, words in ((1, "bob's"), (2, "bob's last")):
        blocks = [text("aaaa", words), text("bbbb", "two")]
        digits.ask("bob", "PATCH", path, json={"revision": revision, "blocks": blocks})
    mine = {"revision": 1, "blocks": [text("aaaa", "ada's"), text("bbbb", "two")]}
    conflict = digits.ask("ada", "PATCH", path, 409, json=mine)
    assert conflict["revision"] == 3
    [block] = conflict["conflicts"]
    assert (block["current"]["text"], block["yours"]["text"]) == ("bob's last", "ada's")
    assert digits.ask("bob", "GET", f"{path}?draft=1")["blocks"][0]["text"] == "bob's last"


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ([text("aaaa", "1"), text("aaaa", "2")], "two blocks have the id 'aaaa'"),
        ([text(f"b{number:05}", "") for number in range(2001)], "2000"),
        ([text(f"b{number:05}", "x" * 20_000) for number in range(105)], "at most 2,097,152"),
        ([text("aaaa", "x" * 20_001)], "20000"),
        ([{"id": "aaaa", "kind": "script", "text": "1"}], "kind"),
        ([{**text("aaaa", "1"), "style": "x"}], "style"),
        ([panels(run_sets=["other"])], "'other'"),
        ([panels(queries=[{"source": "logged"}])], "expected a name or a pattern"),
    ],
)
def test_what_a_report_may_have(digits: AccountsServer, blocks: list[Any], problem: str) -> None:
    body = {"title": "t", "blocks": blocks}
    assert problem in str(digits.ask("bob", "POST", REPORTS, 422, json=body))


def test_the_trash(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    path = f"reports/{report['id']}"
    digits.ask("eve", "DELETE", path, 403)
    digits.ask("bob", "DELETE", path, 204)
    digits.ask("eve", "GET", path, 404)
    assert digits.ask("bob", "GET", f"{REPORTS}?deleted=1")["total"] == 1
    digits.ask("bob", "POST", f"{path}/restore", json={})
    assert digits.ask("eve", "GET", path)["title"] == "Rates"
    recorded = digits.actions(action="report.*", outcome="ok")
    assert recorded == ["report.create", "report.publish", "report.delete", "report.restore"]


def empty_trash(server: AccountsServer, now_ms: int) -> None:
    """As housekeeping does."""
    runs = server.metadata_store.runs
    AccountTrash(server.metadata_store, lambda ids: runs.purge(ids, now_ms)).empty(now_ms)


def test_the_trash_is_emptied_after_its_time(digits: AccountsServer) -> None:
    old, new = create(digits, publish=True), create(digits, publish=True)
    digits.ask("bob", "DELETE", f"reports/{old['id']}", 204)
    digits.clock.now_ms += 10 * DAY_MS
    digits.ask("bob", "DELETE", f"reports/{new['id']}", 204)
    digits.clock.now_ms += 21 * DAY_MS
    empty_trash(digits, digits.clock.now_ms)
    digits.ask("bob", "POST", f"reports/{old['id']}/restore", 404, json={})
    digits.ask("bob", "POST", f"reports/{new['id']}/restore", json={})


def test_a_purged_project_takes_its_reports_with_it(digits: AccountsServer) -> None:
    report = create(digits, publish=True)
    digits.ask("eve", "PUT", f"reports/{report['id']}/star", 204)
    digits.ask("eve", "POST", f"reports/{report['id']}/comments", 201, json={"text": "Why?"})
    digits.ask("ada", "DELETE", "entities/vision/projects/digits", 202)
    digits.ask("bob", "GET", f"reports/{report['id']}", 404)
    empty_trash(digits, digits.clock.now_ms + 31 * DAY_MS)
    with pytest.raises(UnknownReport):
        digits.accounts.reports.get(report["id"])
    assert digits.accounts.report_comments.of_report(report["id"]) == []


def test_names_of_readers_become_links(digits: AccountsServer) -> None:
    blocks = [text("aaaa", "Ask @eve and @mallory, not @nobody")]
    path = f"reports/{create(digits, blocks=blocks, publish=True)['id']}"
    shown = digits.ask("eve", "GET", path)["html"]["aaaa"]
    assert '<a href="/eve"' in shown
    assert 'href="/mallory"' not in shown  # may not read it
    assert 'href="/nobody"' not in shown
    url = digits.ask("bob", "POST", f"{path}/links", 201, json={})["url"]
    guest = {"x-runvitals-link": url.partition("#")[2]}
    assert "<a" not in digits.ask(None, "GET", path, headers=guest)["html"]["aaaa"]
