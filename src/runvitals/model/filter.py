"""Which runs a person means: filters, and the small language of their predicates."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from runvitals.model import fields
from runvitals.model.fields import Scalar
from runvitals.model.state import STATES

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
TEXT_COLUMNS = ("id", "name", "group", "job_type")
NUMBER_COLUMNS = ("started_ms", "last_ms", "duration_ms", "exit_code", "signal")
_WORDS = re.compile(r"\s*(\S+?)\s*(==|!=|<=|>=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison with a value of each run; a run that has no such value, or one of another type, fails it.

    Args:
        field: `config.…` or `summary.…` (dotted where objects lie in objects), or one of `TEXT_COLUMNS` and
            `NUMBER_COLUMNS`.
        operator: one of `OPERATORS`.
        value: a number, a text or a truth value. Of a text the first 200 characters count.
    """

    field: str
    operator: str
    value: float | str | bool

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: an unknown field or operator, or a value of the wrong type.
        """
        if self.operator not in OPERATORS:
            raise ValueError(f"operator {self.operator!r} is none of {' '.join(OPERATORS)}")
        if not isinstance(self.value, (int, float, str, bool)):
            raise ValueError(f"{self.field} can be compared with a number, a text, true and false only")
        if self.field in NUMBER_COLUMNS and self.scalar.kind != fields.NUMBER:
            raise ValueError(f"{self.field} can be compared with a number only, not with {self.value!r}")
        if self.field not in (*TEXT_COLUMNS, *NUMBER_COLUMNS) and not is_field(self.field):
            raise ValueError(f"{self.field!r} is no field: {allowed_fields()} are")

    @property
    def scalar(self) -> Scalar:
        """The value as fields are compared with it."""
        found = fields.scalar(self.value)
        assert found is not None
        return found

    @classmethod
    def parse(cls, text: str) -> Predicate:
        """A predicate as a person types it.

        The value is a number, `true` or `false`, or a text, in JSON's quotes where it begins with one or
        looks like something else.

        Raises:
            ValueError: anything else, with an example.

        Example:
            >>> Predicate.parse("config.lr > 1e-3")
            Predicate(field='config.lr', operator='>', value=0.001)
            >>> Predicate.parse('config.optimizer = adamw').value
            'adamw'
        """
        found = _WORDS.fullmatch(text)
        if found is None or not found[3]:
            raise ValueError(f'{text!r} is no comparison: config.lr > 0.1 and summary.note = "two words" are')
        return cls(found[1], "=" if found[2] == "==" else found[2], _literal(found[3]))


def _literal(text: str) -> float | str | bool:
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        return float(text)
    if not text.startswith('"'):
        return text
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, str):
        raise ValueError(f'{text} is no text in quotes: "two words" and "a \\"quoted\\" one" are')
    return value


def is_field(name: str) -> bool:
    """Whether a name can be one of a configuration's or summary's leaf."""
    section, dot, rest = name.partition(".")
    return section in fields.SECTIONS and bool(dot and rest)


def allowed_fields() -> str:
    return ", ".join((*TEXT_COLUMNS, *NUMBER_COLUMNS, *(f"{section}.…" for section in fields.SECTIONS)))


@dataclass(frozen=True, slots=True)
class Filter:
    """Runs for which all of this holds; an empty filter means all runs but those thrown away.

    Args:
        project: its name.
        states: in any of these.
        tags: with all of these.
        text: every word of it occurs in the run's id, name, group, job type, tags, notes or configuration
            values, in small or capital letters.
        where: predicates that hold.
        device: that used this device, or saw it and may have: its UUID, or `<host>/<PCI address>`.
        deleted: runs that were thrown away, instead of those that were not.

    Example:
        >>> Filter(project="digits", text="resnet", where=(Predicate.parse("summary.loss < 0.1"),))
    """

    project: str | None = None
    states: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    text: str = ""
    where: tuple[Predicate, ...] = ()
    deleted: bool = False
    device: str | None = None

    def __post_init__(self) -> None:
        """
        Raises:
            ValueError: a state that there is not.
        """
        for state in self.states:
            if state not in STATES:
                raise ValueError(f"state {state!r} is none of {', '.join(STATES)}")
