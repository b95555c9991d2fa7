"""What one author has changed in a report and not taken back: an editor that is opened later undoes it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, NamedTuple

from runvitals.server.reports.document import Document

_HEADS: Final = ("title", "description")
_Key = tuple[str, str]
"""A part of a document: `("head", "title")`, `("block", id)` or `("order", "")`."""


class SavedDocument(NamedTuple):
    """A version of a report."""

    revision: int
    author_id: int | None
    created_ms: int
    document: Document


class Change(NamedTuple):
    """A part of a document before and after an edit; None: it was not there."""

    before: Any
    after: Any


@dataclass(slots=True)
class Edit:
    """What one saved revision changed and later ones of its author did not take back.

    Attributes:
        blocks: by their ids.
        order: all ids of blocks before and after; None if they are the same.
    """

    revision: int
    created_ms: int
    title: Change | None = None
    description: Change | None = None
    blocks: dict[str, Change] = field(default_factory=dict)
    order: Change | None = None


class _Step(NamedTuple):
    revision: int
    change: Change


def own_edits(versions: Sequence[SavedDocument], author_id: int) -> list[Edit]:
    """Return the edits of an author, the newest first.

    If the author set a part of the document back to what it was before, by undoing or by hand, the edits
    between are left out with it.

    Args:
        versions: the oldest first; of the first one, only its document is used.
    """
    steps: defaultdict[_Key, list[_Step]] = defaultdict(list)
    ids: dict[int, Change] = {}
    created_ms = {}
    for previous, version in pairwise(versions):
        if version.author_id != author_id:
            continue
        created_ms[version.revision] = version.created_ms
        ids[version.revision] = Change(_ids(previous.document), _ids(version.document))
        for key, change in _changes(previous.document, version.document):
            _add(steps[key], _Step(version.revision, change))
    edits: dict[int, Edit] = {}
    for (kind, name), of_part in steps.items():
        for revision, change in of_part:
            edit = edits.setdefault(revision, Edit(revision, created_ms[revision]))
            if kind == "head":
                setattr(edit, name, change)
            elif kind == "block":
                edit.blocks[name] = change
            if ids[revision].before != ids[revision].after:
                edit.order = ids[revision]
    return [edits[revision] for revision in sorted(edits, reverse=True)]


def _add(steps: list[_Step], step: _Step) -> None:
    """Add a step to those of a part, or remove the ones that it takes back."""
    value = step.change.before
    for position in range(len(steps) - 1, -1, -1):
        earlier = steps[position].change
        if earlier.after != value:  # somebody else changed it between
            break
        value = earlier.before
        if value == step.change.after:
            del steps[position:]
            return
    steps.append(step)


def _changes(before: Document, after: Document) -> Iterator[tuple[_Key, Change]]:
    for name in _HEADS:
        if before[name] != after[name]:
            yield ("head", name), Change(before[name], after[name])
    blocks, later = ({block["id"]: block for block in document["blocks"]} for document in (before, after))
    for block_id in {**blocks, **later}:
        change = Change(blocks.get(block_id), later.get(block_id))
        if change.before != change.after:
            yield ("block", block_id), change
    order = Change([name for name in blocks if name in later], [name for name in later if name in blocks])
    if order.before != order.after:
        yield ("order", ""), order


def _ids(document: Document) -> list[str]:
    return [block["id"] for block in document["blocks"]]
