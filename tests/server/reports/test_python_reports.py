"""Reports written from Python, on a real server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from runvitals.errors import UsageError
from runvitals.readers.servers import ServerError
from runvitals.reports import Markdown, Panel, Panels, Report, ReportChanged, RunSet
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts_server import T0, AccountsServer

New = Callable[..., Report]


@pytest.fixture
def new(digits: AccountsServer) -> New:
    """Makes reports of bob."""

    def make(*blocks: object, **how: object) -> Report:
        bob = digits.accounts.users.by_name("bob")
        key, _ = digits.accounts.keys.create("k", CLI, T0, user_id=bob.id)
        how = {"title": "Which rate?", "url": digits.url, "token": key, **how}
        return Report("vision/digits", blocks=blocks, **how)  # type: ignore[arg-type]

    return make


def test_a_report_is_written_published_and_loaded(digits: AccountsServer, new: New) -> None:
    grid = Panels(
        [Panel("line", "train/loss"), Panel("bar", "system:gpu.*.gpu")], [RunSet("tag:rates", limit=5)]
    )
    report = new("## Result", grid)
    assert report.publish().is_published
    assert report.url == f"{digits.url}/vision/digits/reports/Which-rate--{report.id}"
    read = digits.ask("eve", "GET", f"reports/{report.id}")
    assert read["html"][read["blocks"][0]["id"]] == "<h3>Result</h3>\n"
    shown = read["blocks"][1]["panels"]
    queries = [(panel["queries"][0]["source"], panel["queries"][0]["name"]) for panel in shown]
    assert queries == [("logged", "train/loss"), ("system", "gpu.*.gpu")]
    assert shown[0]["settings"]["metrics"] == ['logged:"train/loss"']
    again = new()
    again._read(str(report.id))
    assert again.title == "Which rate?"
    assert again._document() == report._document()


def test_changes_of_others_are_merged_or_a_conflict(digits: AccountsServer, new: New) -> None:
    report = new(Markdown("one", "aaaa"), Markdown("two", "bbbb")).save()
    blocks = [{"id": "aaaa", "kind": "text", "text": "one"}, {"id": "bbbb", "kind": "text", "text": "TWO"}]
    digits.ask("bob", "PATCH", f"reports/{report.id}", json={"revision": 1 + 1, "blocks": blocks})
    report.blocks[0] = Markdown("ONE", "aaaa")
    report.save()
    assert [block.text for block in report.blocks if isinstance(block, Markdown)] == ["ONE", "TWO"]
    stale = new()
    stale._read(str(report.id))
    stale.blocks[0] = Markdown("first", "aaaa")
    report.blocks[0] = Markdown("second", "aaaa")
    report.save()
    with pytest.raises(ReportChanged) as raised:
        stale.save()
    [conflict] = raised.value.conflicts
    assert (conflict.current or {})["text"] == "second"
    assert (conflict.yours or {})["text"] == "first"


def test_a_deleted_report_can_be_restored(digits: AccountsServer, new: New) -> None:
    report = new("text").publish()
    report.delete()
    digits.ask("eve", "GET", f"reports/{report.id}", 404)
    report.restore()
    digits.ask("eve", "GET", f"reports/{report.id}")


def test_what_is_wrong_is_named(new: New) -> None:
    with pytest.raises(UsageError, match="entity/project"):
        Report("digits", url="http://127.0.0.1:1")
    with pytest.raises(UsageError, match="before it is saved"):
        _ = new().url
    with pytest.raises(UsageError, match="title--id"):
        Report.load("https://runs.example.org/vision/digits")
    with pytest.raises(ValueError, match="expected one of line"):
        Panel("pie", "loss")
    with pytest.raises(ServerError, match=r"2,?000|2000"):
        new(*["x"] * 2001).save()
