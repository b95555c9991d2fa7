"""The fields that runs can be sorted and filtered by: the leaves of their configuration and summary."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan
from typing import Any

from runvitals.model.names import plain_text, shorten

SECTIONS = ("config", "summary")
MAX_TEXT = 200
"""Characters of a text that are compared when sorting or filtering."""
MAX_FIELDS = 1000
"""Leaves of a section that can be sorted and filtered by. The section itself keeps all of them."""
MAX_DEPTH = 8
_MAX_NAME = 300

NUMBER, TEXT = 0, 1


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf in comparable form: a NUMBER (`text` is empty) or a TEXT (`number` is 0)."""

    kind: int
    number: float
    text: str


def of_number(number: float) -> Scalar:
    """Make the value of a number."""
    return Scalar(NUMBER, number, "")


def of_text(text: str) -> Scalar:
    """Make the value of a text, of which only the beginning is compared."""
    return Scalar(TEXT, 0.0, shorten(text, MAX_TEXT))


def scalar(value: object) -> Scalar | None:
    """Return a JSON value in comparable form; None for null, which counts as absent.

    Booleans, NaN, lists and integers beyond the range of float64 are compared as text.

    Example:
        >>> scalar(True)
        Scalar(kind=1, number=0.0, text='true')
    """
    if value is None:
        return None
    if isinstance(value, str):
        return of_text(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            return of_text(str(value))
        return of_text("NaN") if isnan(number) else of_number(number)
    return of_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def leaves(section: str, values: dict[str, Any]) -> dict[str, Scalar]:
    """Return the first `MAX_FIELDS` leaves of a section by dotted name.

    Names too long for an index are left out. Objects deeper than `MAX_DEPTH` are one leaf, as text.

    Example:
        >>> leaves("config", {"optimizer": {"name": "adam", "lr": 0.1}})
        {'config.optimizer.name': Scalar(kind=1, number=0.0, text='adam'),
         'config.optimizer.lr': Scalar(kind=0, number=0.1, text='')}
    """
    by_name: dict[str, Scalar] = {}
    for name, value in _walk(section, values, 0):
        leaf = scalar(value)
        if leaf is not None and len(name) <= _MAX_NAME:
            by_name[plain_text(name)] = leaf
            if len(by_name) == MAX_FIELDS:
                break
    return by_name


def _walk(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and depth <= MAX_DEPTH:
        for key, item in value.items():
            yield from _walk(f"{name}.{key}", item, depth + 1)
    else:
        yield name, value
