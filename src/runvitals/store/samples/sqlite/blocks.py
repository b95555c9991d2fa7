"""Samples in memory: blocks as written, and groups as read, in which the last write has won."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers

OLDEST = -1
"""The order of samples on disk: every write in memory wins over them."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of one set of columns.

    Args:
        metrics: ids of the columns.
        t: ms UTC of the rows, in any order, possibly repeated.
        values: of shape (rows, metrics).
        order: when each row was written, ascending; if times are equal, the larger order wins.
    """

    metrics: tuple[int, ...]
    t: Integers
    values: Floats
    order: Integers


@dataclass(frozen=True, slots=True)
class Group:
    """Metrics with the same times: ascending and unique. `values`: of shape (times, metrics)."""

    metrics: tuple[int, ...]
    t: Integers
    values: Floats

    def part(self, rows: slice | NDArray[np.bool_]) -> Group:
        """Return some of the rows."""
        return Group(self.metrics, self.t[rows], self.values[rows])


def on_disk(metrics: tuple[int, ...], t: Integers, values: Floats) -> Block:
    """Return a block of samples on disk, over which any write in memory wins."""
    return Block(metrics, t, values, np.full(len(t), OLDEST, np.int64))


def groups(blocks: Iterable[Block], selected: AbstractSet[int] | None = None) -> list[Group]:
    """Merge blocks: the last write of each (metric, time), grouped by metrics that share their times.

    Args:
        selected: only these metrics; None for all.
    """
    by_columns: dict[tuple[int, ...], list[Block]] = {}
    for block in blocks:
        if len(block.t):
            by_columns.setdefault(block.metrics, []).append(block)
    if len(by_columns) == 1:  # almost always
        ((columns, same_columns),) = by_columns.items()
        metrics = columns if selected is None else tuple(selected & frozenset(columns))
        return [_group(metrics, same_columns)] if metrics else []
    # By numbers of the sets: to hash a set of 50,000 columns for each of its metrics would take a minute.
    numbered = list(by_columns.values())
    sets_of: dict[int, list[int]] = {}
    for number, columns in enumerate(by_columns):
        for metric in columns:
            if selected is None or metric in selected:
                sets_of.setdefault(metric, []).append(number)
    metrics_by_sets: dict[tuple[int, ...], list[int]] = {}
    for metric, sets in sets_of.items():
        metrics_by_sets.setdefault(tuple(sets), []).append(metric)
    return [
        _group(tuple(metrics), [block for number in sets for block in numbered[number]])
        for sets, metrics in metrics_by_sets.items()
    ]


def _group(metrics: tuple[int, ...], blocks: Sequence[Block]) -> Group:
    t = _concatenate([block.t for block in blocks])
    values = _concatenate([_columns(block, metrics) for block in blocks])
    if len(t) < 2 or bool((t[1:] > t[:-1]).all()):
        return Group(metrics, t, values)
    rows = np.lexsort((_concatenate([block.order for block in blocks]), t))
    sorted_t = t[rows]
    rows = rows[np.append(sorted_t[1:] != sorted_t[:-1], True)]
    return Group(metrics, t[rows], values[rows])


def _columns(block: Block, metrics: tuple[int, ...]) -> Floats:
    if block.metrics == metrics:
        return block.values
    column = {metric: number for number, metric in enumerate(block.metrics)}
    return block.values[:, [column[metric] for metric in metrics]]


def _concatenate(parts: list[NDArray]) -> NDArray:  # type: ignore[type-arg]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def overwrite(t: Integers, values: Floats, new_t: Integers, new_values: Floats) -> tuple[Integers, Floats]:
    """Merge later samples into a series. The times of both are ascending and unique."""
    if not len(t) or not len(new_t) or new_t[0] > t[-1]:
        return np.concatenate((t, new_t)), np.concatenate((values, new_values))
    is_kept = ~np.isin(t, new_t, assume_unique=True)
    t, values = np.concatenate((t[is_kept], new_t)), np.concatenate((values[is_kept], new_values))
    rows = np.argsort(t, kind="stable")
    return t[rows], values[rows]
