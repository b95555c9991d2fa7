"""Ends runs early that do worse than others did after as many values of the metric (Hyperband)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

from runvitals.server.sweeps.problems import Problems, is_number, shorten

MAX_BRACKETS: Final = 20
_MAX_VALUES: Final = 10_000_000
_MAX_ETA: Final = 1000


@dataclass(frozen=True, slots=True)
class Hyperband:
    """When runs are compared.

    Args:
        brackets: after how many values of the metric, ascending.
        eta: of the runs that reached a bracket, the best 1 in `eta` go on.
        strict: a run is compared again at the brackets that it has passed, as others reach them; otherwise
            only at the last one.
    """

    brackets: tuple[int, ...]
    eta: float = 3.0
    strict: bool = False

    def marks(self, costs: Sequence[float]) -> list[float]:
        """The least cost until each bracket that a run has reached.

        Args:
            costs: what the run has logged, in order; of which less is better.

        Example:
            >>> Hyperband((2, 4)).marks([3.0, 1.0, 2.0])
            [1.0]
        """
        finite = [cost for cost in costs if math.isfinite(cost)]
        return [min(finite[:bracket]) for bracket in self.brackets if len(finite) >= bracket]

    def ends(self, marks: Sequence[float], others: Sequence[Sequence[float]]) -> bool:
        """Return whether a run with these marks is too bad to go on, beside other runs of the sweep."""
        reached = range(len(marks)) if self.strict else range(max(0, len(marks) - 1), len(marks))
        return any(self._is_worse(mark, marks[mark], others) for mark in reached)

    def _is_worse(self, position: int, mark: float, others: Sequence[Sequence[float]]) -> bool:
        reached = sorted([mark, *(marks[position] for marks in others if len(marks) > position)])
        if len(reached) < self.eta:  # too few to compare
            return False
        return mark > reached[max(0, math.ceil(len(reached) / self.eta) - 1)]


def parse_hyperband(sent: object, problems: Problems) -> Hyperband | None:
    """The early termination of a configuration; None: runs end by themselves."""
    if sent is None:
        return None
    if not isinstance(sent, Mapping) or sent.get("type") != "hyperband":
        problems.add("early_terminate", f"{shorten(sent)}; expected {{type: hyperband, min_iter: 3}}")
        return None
    eta, strict = sent.get("eta", 3), sent.get("strict", False)
    if not is_number(eta) or not 1 < eta <= _MAX_ETA:
        problems.add("early_terminate.eta", f"{shorten(eta)}; expected a number above 1, up to {_MAX_ETA}")
        return None
    if not isinstance(strict, bool):
        problems.add("early_terminate.strict", f"{shorten(strict)}; expected true or false")
        return None
    least, greatest, count = sent.get("min_iter"), sent.get("max_iter"), sent.get("s")
    if (least is None) == (greatest is None):
        problems.add("early_terminate", "expected either min_iter, or max_iter with s")
        return None
    name, value = ("min_iter", least) if greatest is None else ("max_iter", greatest)
    if not _is_count(value):
        problems.add(f"early_terminate.{name}", f"{shorten(value)}; expected an integer above 0")
        return None
    if greatest is None:
        return Hyperband(_rising(value, float(eta)), float(eta), strict)
    if not _is_count(count) or count > MAX_BRACKETS:
        problems.add("early_terminate.s", f"{shorten(count)}; expected an integer from 1 to {MAX_BRACKETS}")
        return None
    falling = {int(value / eta**power) for power in range(1, count + 1)}
    brackets = tuple(sorted(bracket for bracket in falling if bracket >= 1))
    if not brackets:
        problems.add("early_terminate.max_iter", f"{shorten(value)}; expected at least eta")
        return None
    return Hyperband(brackets, float(eta), strict)


def _rising(first: int, eta: float) -> tuple[int, ...]:
    brackets = {int(first * eta**power) for power in range(MAX_BRACKETS)}
    return tuple(sorted(bracket for bracket in brackets if bracket <= _MAX_VALUES)) or (first,)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MAX_VALUES
