"""What an author can undo in a session that begins later."""

from __future__ import annotations

from typing import Any

from runvitals.server.reports.own_edits import Edit, SavedDocument, own_edits
from tests.server.accounts_server import AccountsServer
from tests.server.reports.documents import create, text

ME, OTHER = 1, 2


def document(title: str = "Rates", **words: str) -> dict[str, Any]:
    """A report of some blocks of text."""
    return {"title": title, "description": "", "blocks": [text(name, of) for name, of in words.items()]}


def edits(*versions: tuple[int, dict[str, Any]]) -> list[Edit]:
    """My edits in a report that begins with the first version."""
    saved = [SavedDocument(at, author, at * 1000, of) for at, (author, of) in enumerate(versions, 1)]
    return own_edits(saved, ME)


def changed(edit: Edit) -> dict[str, tuple[str | None, str | None]]:
    """The texts before and after an edit, by block."""
    texts = lambda change: tuple(block and block["text"] for block in change)  # noqa: E731
    return {name: texts(change) for name, change in edit.blocks.items()}


def test_only_own_edits_are_listed_the_newest_first() -> None:
    first, mine = document(a="one", b="two"), document(a="ONE", b="two")
    theirs, again = document(a="ONE", b="TWO"), document("Rate", a="ONE", b="TWO", c="three")
    newest, oldest = edits((OTHER, first), (ME, mine), (OTHER, theirs), (ME, again))
    assert (newest.revision, newest.title) == (4, ("Rates", "Rate"))
    assert changed(newest) == {"c": (None, "three")}
    assert newest.order == (["a", "b"], ["a", "b", "c"])
    assert (oldest.revision, oldest.created_ms, oldest.order) == (2, 2000, None)
    assert changed(oldest) == {"a": ("one", "ONE")}


def test_what_was_taken_back_is_left_out() -> None:
    words = [document(a=of, b=b) for of, b in (("1", "x"), ("2", "y"), ("3", "y"), ("1", "y"))]
    (left,) = edits(*((ME, of) for of in words))
    assert (left.revision, changed(left)) == (2, {"b": ("x", "y")})
    assert edits((ME, document(a="1")), (ME, document(a="1", b="2")), (ME, document(a="1"))) == []


def test_an_edit_that_another_changed_since_is_not_taken_back_by_chance() -> None:
    mine, theirs = (ME, document(a="2")), (OTHER, document(a="3"))
    newest, oldest = edits((ME, document(a="1")), mine, theirs, (ME, document(a="1")))
    assert (changed(newest), changed(oldest)) == ({"a": ("3", "1")}, {"a": ("1", "2")})


def test_blocks_that_were_moved_and_moved_back() -> None:
    straight, turned = document(a="1", b="2"), document(b="2", a="1")
    (moved,) = edits((ME, straight), (ME, turned))
    assert (moved.blocks, moved.order) == ({}, (["a", "b"], ["b", "a"]))
    assert edits((ME, straight), (ME, turned), (ME, straight)) == []


def test_each_editor_reads_their_own_edits(digits: AccountsServer) -> None:
    path = f"reports/{create(digits, publish=True)['id']}"
    digits.ask("bob", "PUT", f"{path}/shares/mallory", 204, json={"role": "edit"})
    digits.ask(
        "bob", "PATCH", path, json={"revision": 1, "blocks": [text("aaaa", "bob"), text("bbbb", "two")]}
    )
    digits.ask("mallory", "PATCH", path, json={"revision": 2, "description": "mallory"})
    (of_bob,) = digits.ask("bob", "GET", f"{path}/edits")["edits"]
    assert of_bob["blocks"] == [{"id": "aaaa", "before": text("aaaa", "# One"), "after": text("aaaa", "bob")}]
    assert (of_bob["revision"], of_bob["title"], of_bob["order"]) == (2, None, None)
    (of_mallory,) = digits.ask("mallory", "GET", f"{path}/edits")["edits"]
    assert of_mallory["description"] == {"before": "", "after": "mallory"}
    digits.ask("eve", "GET", f"{path}/edits", 403)
