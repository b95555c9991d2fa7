"""Runs of this machine are edited on its page: renamed, starred, moved, deleted, restored, removed."""

from __future__ import annotations

import os
from pathlib import Path

from runvitals.readers.journals.run_handle import open_run
from runvitals.readers.journals.runs import RunList
from runvitals.server.library.local.run_edits import RunEdits
from tests.readers.journals.journals import Training
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_page import browser, now_ms, page, static, type_into  # noqa: F401
from tests.server.pages.test_shared_page import click, shown
from tests.server.test_build import hook  # noqa: F401


def trained(directory: Path, *names: str) -> None:
    for number, name in enumerate(names):
        training = Training(directory, name, start_ms=now_ms() - 900_000 + number, project="digits")
        training.advance(20)
        training.end("finished", exit_code=0)


def names(directory: Path) -> set[str]:
    return {run.name for run in RunList(str(directory)).runs(now_ms())}


def test_a_row_is_renamed_and_starred(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    trained(tmp_path, "one", "two")
    page.open("/runs")
    page.wait("document.querySelectorAll('tbody tr').length == 2")
    page.evaluate("document.querySelector('button[aria-label=\"Rename one\"]').click()")
    page.wait("document.activeElement.matches('.edit input')")
    page.call("Input.insertText", text="基线 baseline")
    page.press("Enter")
    shown(page, "基线 baseline")
    page.evaluate("document.querySelector('button[aria-label=\"Star 基线 baseline\"]').click()")
    page.wait("document.querySelector('button.star.starred')")
    assert names(tmp_path) == {"基线 baseline", "two"}
    keep_picture(page, "list")
    page.open("/runs")  # nothing is only on the page
    page.wait("document.querySelector('button[aria-label=\"Star 基线 baseline\"].starred')")
    assert open_run("基线 baseline", str(tmp_path)).facts.starred


def test_a_run_is_edited_deleted_and_restored_with_undo(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    trained(tmp_path, "one", "two")
    page.open("/runs/one/overview")
    click(page, "button", "Edit")
    page.wait("document.querySelector('dialog')")
    keep_picture(page, "edit")
    page.evaluate("document.querySelectorAll('dialog input')[1].select()")
    page.call("Input.insertText", text="other")
    type_into(page, "dialog textarea", "what I saw")
    click(page, "dialog button", "Save")
    page.wait("!document.querySelector('dialog')")
    facts = open_run("one", str(tmp_path)).facts
    assert facts.project == "other"
    assert "what I saw" in facts.notes
    keep_picture(page, "run")
    click(page, "button", "Delete")
    click(page, "dialog button", "Move to trash")
    shown(page, "one is in the trash.")
    assert names(tmp_path) == {"two"}
    keep_picture(page, "deleted")
    click(page, "button", "Restore")
    page.wait("document.querySelectorAll('tbody tr').length == 1")
    assert names(tmp_path) == {"one", "two"}


def test_many_runs_are_tagged_moved_and_removed_for_good(page: Browser, tmp_path: Path) -> None:  # noqa: F811
    trained(tmp_path, "one", "two", "three")
    page.open("/runs")
    page.wait("document.querySelectorAll('tbody tr').length == 3")
    page.wait("(e => e && (e.click(), true))(document.querySelector('input[aria-label=\"Select one\"]'))")
    page.wait("(e => e && (e.click(), true))(document.querySelector('input[aria-label=\"Select two\"]'))")
    click(page, ".bulk button", "Move")
    type_into(page, "dialog input", "moved")
    click(page, "dialog button", "Move")
    shown(page, "2 runs were moved to moved.")
    assert {run.id: run.project for run in RunList(str(tmp_path)).runs(now_ms())} == {
        "one": "moved",
        "two": "moved",
        "three": "digits",
    }
    click(page, ".bulk button", "Delete")
    shown(page, "2 runs were moved to the trash.")
    page.wait("document.querySelectorAll('tbody tr').length == 1")
    click(page, "button", "Undo")
    page.wait("document.querySelectorAll('tbody tr').length == 3")

    RunEdits(str(tmp_path)).record("two", {"deleted": True}, now_ms() + 1000)
    click(page, "a.trash", "Trash")
    page.wait("document.querySelector('button[aria-label=\"Restore two\"]')")
    page.wait("document.querySelector('input[aria-label=\"Select two\"]')")
    page.wait("(e => e && (e.click(), true))(document.querySelector('input[aria-label=\"Select two\"]'))")
    page.wait("document.querySelector('.bulk')")
    keep_picture(page, "trash")
    click(page, ".bulk button", "Delete for good")
    page.wait("document.querySelector('dialog')")
    keep_picture(page, "for-good")
    click(page, "dialog button", "Delete for good")
    shown(page, "1 run was deleted for good.")
    assert sorted(os.listdir(tmp_path / "runs")) == ["one", "three"]


def test_an_edit_of_another_process_appears_on_an_open_page(
    page: Browser,  # noqa: F811
    tmp_path: Path,
) -> None:
    trained(tmp_path, "one")
    edits = RunEdits(str(tmp_path))
    page.open("/runs/one/overview")
    page.wait("document.querySelector('h1')?.innerText == 'one'")
    edits.record("one", {"name": "from elsewhere"}, now_ms())
    page.open("/runs")
    shown(page, "from elsewhere")
    edits.record("one", {"name": "and again"}, now_ms())
    shown(page, "and again")
