"""The syntax tree of PromQL expressions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


class QueryError(Exception):
    """The query cannot be evaluated; the text is for whoever wrote it. `kind`: as Prometheus names it."""

    def __init__(self, text: str, kind: Literal["bad_data", "execution", "timeout"] = "bad_data") -> None:
        super().__init__(text)
        self.kind = kind


At = int | Literal["start", "end"]


@dataclass(frozen=True)
class Matcher:
    """A condition on a label: =, !=, =~ or !~."""

    label: str
    operator: str
    value: str


@dataclass(frozen=True)
class Number:
    """A number in the query."""

    value: float


@dataclass(frozen=True)
class StringLiteral:
    """A text in the query, as an argument of a function."""

    value: str


@dataclass(frozen=True)
class Selector:
    """Series by their labels.

    Args:
        range_ms: 0 for an instant vector.
        offset_ms: how long before the time of the query.
        at: the modifier `@`: at this time in ms UTC, or at the start or end of the query, rather than at each
            step.
        is_native: whether it selects the buckets of native histograms.
    """

    matchers: tuple[Matcher, ...]
    range_ms: int = 0
    offset_ms: int = 0
    at: At | None = None
    is_native: bool = False


@dataclass(frozen=True)
class Subquery:
    """`expression[range:step]`: the values of an expression as a range vector.

    Args:
        step_ms: 0: the default.
        offset_ms, at: as of a selector.
    """

    expression: Expression
    range_ms: int
    step_ms: int = 0
    offset_ms: int = 0
    at: At | None = None


@dataclass(frozen=True)
class Call:
    """A call of a function."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Aggregation:
    """`without`: the labels are those that are dropped, else those that are kept."""

    operator: str
    expression: Expression
    parameter: Expression | None
    labels: tuple[str, ...]
    without: bool


@dataclass(frozen=True)
class Matching:
    """How the series of two vectors find each other.

    Args:
        labels: `on` these, otherwise all but these.
        side: of the vector that may have several series for one of the other: group_left or group_right.
        include: labels that are copied from the other.
    """

    labels: tuple[str, ...] = ()
    on: bool = False
    side: Literal["", "left", "right"] = ""
    include: tuple[str, ...] = ()


@dataclass(frozen=True)
class Binary:
    """An operator between two expressions."""

    operator: str
    left: Expression
    right: Expression
    matching: Matching
    returns_bool: bool


@dataclass(frozen=True)
class Negation:
    """An expression after a minus sign."""

    expression: Expression


Expression = Number | StringLiteral | Selector | Subquery | Call | Aggregation | Binary | Negation
