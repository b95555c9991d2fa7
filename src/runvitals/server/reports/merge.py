"""Merges what two people changed in a report, block by block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from runvitals.server.reports.document import Document

StoredBlock = Mapping[str, Any]


class Conflict(NamedTuple):
    """A block that both changed, as it is now and as the second wants it. None: it was removed.

    `id`: of the block; `title` and `description` are those of the report.
    """

    id: str
    current: StoredBlock | str | None
    yours: StoredBlock | str | None


class Merged(NamedTuple):
    """A document with the changes of both. `others`: ids of blocks that the first changed or added."""

    document: Document
    others: list[str]


def merge(base: Document, current: Document, yours: Document) -> Merged | list[Conflict]:
    """Merge changes of one document; return the conflicts if there are any.

    Args:
        base: what both started from.
        current: what is stored now.
        yours: what the second person wants to store.

    Example:
        >>> text = lambda name, words: {"id": name, "kind": "text", "text": words}
        >>> whole = lambda *blocks: {"title": "", "description": "", "blocks": list(blocks)}
        >>> base = whole(text("aaaa", "one"), text("bbbb", "two"))
        >>> first = whole(text("aaaa", "ONE"), text("bbbb", "two"))
        >>> second = whole(text("aaaa", "one"), text("bbbb", "TWO"))
        >>> [block["text"] for block in merge(base, first, second).document["blocks"]]
        ['ONE', 'TWO']
    """
    conflicts: list[Conflict] = []
    heads = {}
    for name in ("title", "description"):
        heads[name] = _either(base[name], current[name], yours[name])
        if heads[name] is None:
            conflicts.append(Conflict(name, current[name], yours[name]))
    before, now, then = (_by_id(document) for document in (base, current, yours))
    merged: dict[str, StoredBlock] = {}
    for block_id in {**now, **then, **before}:
        versions = before.get(block_id), now.get(block_id), then.get(block_id)
        if versions[1] != versions[0] and versions[2] != versions[0] and versions[1] != versions[2]:
            conflicts.append(Conflict(block_id, versions[1], versions[2]))
            continue
        block = versions[2] if versions[1] == versions[0] else versions[1]
        if block is not None:
            merged[block_id] = block
    if conflicts:
        return conflicts
    order = _order(list(before), list(now), list(then))
    others = [name for name in now if name in merged and now[name] != before.get(name)]
    blocks = [merged[block_id] for block_id in order if block_id in merged]
    return Merged({**heads, "blocks": blocks}, others)


def _either(base: str, current: str, yours: str) -> str | None:
    """The one of two values that differs from the base; None if both do, in different ways."""
    if current in (base, yours):
        return yours
    return current if yours == base else None


def _by_id(document: Document) -> dict[str, StoredBlock]:
    return {block["id"]: block for block in document["blocks"]}


def _order(base: Sequence[str], current: Sequence[str], yours: Sequence[str]) -> list[str]:
    """Return the ids in the order of `yours`, with what only `current` has after the same neighbours.

    If only `current` was reordered, its order counts.
    """
    common = set(base) & set(current) & set(yours)
    yours_moved = [name for name in yours if name in common] != [name for name in base if name in common]
    leading, following = (yours, current) if yours_moved else (current, yours)
    order = list(leading)
    present = set(order)
    previous: str | None = None
    for name in following:
        if name not in present:
            order.insert(0 if previous is None else order.index(previous) + 1, name)
            present.add(name)
        previous = name
    return order
