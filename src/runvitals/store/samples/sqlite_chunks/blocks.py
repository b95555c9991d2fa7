"""Samples in memory: blocks as they were written, and groups as they are read, where the last write has
won.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runvitals.buckets import Floats, Integers

OLDEST = -1
"""The order of what lies on disk: every later write wins over it."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one set of columns.

    Args:
        metrics: ids of the columns.
        t: ms UTC of the rows, in any order, perhaps repeated.
        values: rows × metrics.
        order: of each row, when it was written: the larger wins; ascending.
    """

    metrics: tuple[int, ...]
    t: Integers
    values: Floats
    order: Integers


@dataclass(frozen=True, slots=True)
class Group:
    """Metrics that have the same times: ascending, each once. `values`: times × metrics."""

    metrics: tuple[int, ...]
    t: Integers
    values: Floats

    def part(self, chosen: slice | NDArray[np.bool_]) -> Group:
        return Group(self.metrics, self.t[chosen], self.values[chosen])


def on_disk(metrics: tuple[int, ...], t: Integers, values: Floats) -> Block:
    """A block that any write in memory wins over."""
    return Block(metrics, t, values, np.full(len(t), OLDEST, np.int64))


def groups(blocks: Iterable[Block], wanted: Collection[int] | None = None) -> list[Group]:
    """What the blocks hold, the last write of each (metric, time) alone, by sets of metrics that share their
    times.

    Args:
        wanted: only these metrics; None for all.
    """
    by_columns: dict[tuple[int, ...], list[Block]] = {}
    for block in blocks:
        if len(block.t):
            by_columns.setdefault(block.metrics, []).append(block)
    if len(by_columns) == 1:  # almost always
        ((columns, some),) = by_columns.items()
        metrics = columns if wanted is None else tuple(metric for metric in wanted if metric in columns)
        return [_group(metrics, some)] if metrics else []
    held_by: dict[int, list[tuple[int, ...]]] = {}
    for columns in by_columns:
        for metric in columns:
            if wanted is None or metric in wanted:
                held_by.setdefault(metric, []).append(columns)
    sharing: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for metric, holders in held_by.items():
        sharing.setdefault(tuple(holders), []).append(metric)
    return [
        _group(tuple(some), [block for columns in holders for block in by_columns[columns]])
        for holders, some in sharing.items()
    ]


def _group(metrics: tuple[int, ...], blocks: Sequence[Block]) -> Group:
    t = _joined([block.t for block in blocks])
    values = _joined([_columns(block, metrics) for block in blocks])
    if len(t) < 2 or bool((t[1:] > t[:-1]).all()):
        return Group(metrics, t, values)
    rows = np.lexsort((_joined([block.order for block in blocks]), t))
    sorted_t = t[rows]
    rows = rows[np.append(sorted_t[1:] != sorted_t[:-1], True)]
    return Group(metrics, t[rows], values[rows])


def _columns(block: Block, metrics: tuple[int, ...]) -> Floats:
    if block.metrics == metrics:
        return block.values
    return block.values[:, [block.metrics.index(metric) for metric in metrics]]


def _joined(parts: list[NDArray]) -> NDArray:  # type: ignore[type-arg]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def overwritten(t: Integers, values: Floats, new_t: Integers, new_values: Floats) -> tuple[Integers, Floats]:
    """One series and what was written to it later, as one. Both with ascending times, each once."""
    if not len(t) or not len(new_t) or new_t[0] > t[-1]:
        return np.concatenate((t, new_t)), np.concatenate((values, new_values))
    kept = ~np.isin(t, new_t, assume_unique=True)
    t, values = np.concatenate((t[kept], new_t)), np.concatenate((values[kept], new_values))
    rows = np.argsort(t, kind="stable")
    return t[rows], values[rows]
