"""Values of expressions at all steps of a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers

Labels = tuple[tuple[str, str], ...]
"""Sorted by name, without empty values."""
Flags = NDArray[np.bool_]
NAME = "__name__"


@dataclass(frozen=True)
class VectorSeries:
    """A series of a vector: a value at each step at which it is present."""

    labels: Labels
    values: Floats
    present: Flags


@dataclass(frozen=True)
class ScalarValues:
    """A number at each step."""

    values: Floats


@dataclass(frozen=True)
class Range:
    """The samples of a series, without gaps; a range vector has them as windows before each step.

    `gaps`: the times of gaps.
    """

    labels: Labels
    t: Integers
    values: Floats
    gaps: Integers | None = None


Vector = list[VectorSeries]


def sorted_labels(labels: Mapping[str, str]) -> Labels:
    """Return labels by name, without empty ones, which are none."""
    return tuple(sorted((name, value) for name, value in labels.items() if value))


def without(labels: Labels, names: Collection[str]) -> Labels:
    """Return the labels but these."""
    return tuple(pair for pair in labels if pair[0] not in names)


def only(labels: Labels, names: Collection[str]) -> Labels:
    """Return only these of some labels."""
    return tuple(pair for pair in labels if pair[0] in names)


def without_name(labels: Labels) -> Labels:
    """Return labels without the metric's name."""
    return without(labels, (NAME,))
