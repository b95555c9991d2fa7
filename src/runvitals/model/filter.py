"""Filters for runs, and the grammar of their predicates: `config.lr > 0.1`.

`filter_text` has the grammar of whole filters.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Literal, Protocol

from runvitals.model import fields, run_verdict, system_statistics
from runvitals.model.fields import Scalar
from runvitals.model.state import STATES

OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
TEXT_COLUMNS = ("id", "name", "group", "job_type")
NUMBER_COLUMNS = ("started_ms", "last_ms", "duration_ms", "exit_code", "signal")
# Each takes time proportional to the text: no two repetitions next to each other match the same characters.
_PREDICATE = re.compile(r"(\S+?)\s*(==|!=|<=|>=|=|<|>)(.*)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison with a value of each run.

    Runs without such a value, or with one of another type, do not match.

    Args:
        field: `config.…` or `summary.…` (dotted for nested objects), a system statistic such as
            `system.gpu.max`, or one of `TEXT_COLUMNS` and `NUMBER_COLUMNS`.
        operator: one of `OPERATORS`.
        value: a number, a text or a bool. Of a text, the first 200 characters are compared.
    """

    field: str
    operator: str
    value: float | str | bool

    def __post_init__(self) -> None:
        """Check the condition.

        Raises:
            ValueError: an unknown field or operator, or a value of the wrong type.
        """
        if self.operator not in OPERATORS:
            raise ValueError(f"unknown operator {self.operator!r}; expected one of {' '.join(OPERATORS)}")
        if not isinstance(self.value, (int, float, str, bool)):
            raise ValueError(f"invalid value for {self.field}; expected a number, a string, true or false")
        if self.field in NUMBER_COLUMNS and self.scalar.kind != fields.NUMBER:
            raise ValueError(f"invalid value {self.value!r} for {self.field}; expected a number")
        if self.field not in (*TEXT_COLUMNS, *NUMBER_COLUMNS) and not is_field(self.field):
            raise ValueError(f"unknown field {self.field!r}; expected one of {allowed_fields()}")

    @property
    def scalar(self) -> Scalar:
        """The value in comparable form."""
        scalar = fields.scalar(self.value)
        assert scalar is not None
        return scalar

    @classmethod
    def parse(cls, text: str) -> Predicate:
        """Parse a predicate as users write it.

        The value is a number, `true` or `false`, or a text. A text that starts with a quote, or looks like
        another kind of value, must be quoted as in JSON.

        Raises:
            ValueError: invalid filter expression; the text has an example.

        Example:
            >>> Predicate.parse("config.lr > 1e-3")
            Predicate(field='config.lr', operator='>', value=0.001)
            >>> Predicate.parse('config.optimizer = adamw').value
            'adamw'
        """
        match = _PREDICATE.fullmatch(text.strip())
        value = match[3].strip() if match else ""
        if match is None or not value:
            raise ValueError(
                f'invalid filter expression {text!r:.200}; try config.lr > 0.1 or summary.note = "two words"'
            )
        name = run_verdict.finding_field(match[1]) or system_statistics.statistic_named(match[1]) or match[1]
        return cls(name, "=" if match[2] == "==" else match[2], literal(value))


def literal(text: str) -> float | str | bool:
    """The value that a text means: a number, `true` or `false`, or a text, which may be quoted as in JSON.

    Raises:
        ValueError: an invalid quoted text.
    """
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
        raise ValueError(f'invalid quoted text {text}; expected e.g. "two words" or "a \\"quoted\\" one"')
    return value


def is_field(name: str) -> bool:
    """Return whether a name can be a configuration, summary, system or finding field."""
    section, dot, rest = name.partition(".")
    if section in fields.SECTIONS and dot and rest:
        return True
    return system_statistics.is_statistic(name) or name in run_verdict.FINDING_FIELDS


def allowed_fields() -> str:
    """List the fields that a filter can name, for messages."""
    sections = (*fields.SECTIONS, system_statistics.SECTION)
    of_sections = (f"{section}.…" for section in sections)
    return ", ".join((*TEXT_COLUMNS, *NUMBER_COLUMNS, *of_sections, *run_verdict.FINDING_FIELDS))


_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def ascii_lower(text: str) -> str:
    """Return a text with A to Z in lower case, which is what `lower` does in both databases."""
    return text.translate(_ASCII_LOWER)


Label = Literal[
    "state",
    "tag",
    "host",
    "project",
    "entity",
    "user",
    "group",
    "job_type",
    "id",
    "name",
    "note",
    "device",
    "sweep",
    "finding",
    "verdict",
]
"""Names that `name:value` in a filter text compares with texts of the run."""


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A pattern that a text is compared with.

    Args:
        text: what it must be; or what it must contain, if it is a substring.
        kind: `exact`; `glob`: `*` stands for any text; `substring`; `regex`: a regular expression that is
            found somewhere in the text. Globs and substrings ignore the case of A to Z where the label is
            `name` or `note`.
    """

    text: str
    kind: Literal["exact", "glob", "substring", "regex"] = "exact"


@dataclass(frozen=True, slots=True)
class Words:
    """A text that occurs where `Filter.text` is searched."""

    text: str


@dataclass(frozen=True, slots=True)
class Labelled:
    """One of the texts of a label matches one of the patterns."""

    label: Label
    patterns: tuple[TextPattern, ...]


@dataclass(frozen=True, slots=True)
class FieldMatch:
    """The text of a configuration or summary field matches a pattern."""

    field: str
    pattern: TextPattern


@dataclass(frozen=True, slots=True)
class FieldComparison:
    """One of some comparisons with a value of the run holds."""

    alternatives: tuple[Predicate | FieldMatch, ...]


@dataclass(frozen=True, slots=True)
class HasField:
    """A configuration, summary or system field has a value, or is an object with fields that have."""

    field: str


@dataclass(frozen=True, slots=True)
class TagCount:
    """The run has as many tags."""

    count: int


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these terms holds."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these terms hold."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a filter text, or of a filter that another system's client sent.

    `negated`: runs for which the condition does not hold.
    """

    condition: Words | Labelled | FieldComparison | HasField | TagCount | AnyOf | AllOf
    negated: bool = False

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it compares."""
        condition = self.condition
        if isinstance(condition, (AnyOf, AllOf)):
            return tuple(name for term in condition.terms for name in term.fields)
        if isinstance(condition, HasField):
            return (condition.field,)
        if not isinstance(condition, FieldComparison):
            return ()
        return tuple(alternative.field for alternative in condition.alternatives)

    @property
    def needs_findings(self) -> bool:
        """Whether it can only be decided by the findings about a run."""
        condition = self.condition
        if isinstance(condition, (AnyOf, AllOf)):
            return any(term.needs_findings for term in condition.terms)
        if isinstance(condition, Labelled):
            return condition.label in ("finding", "verdict")
        return any(name in run_verdict.FINDING_FIELDS for name in self.fields)


class PlacedRun(Protocol):
    """The project and owner of a run."""

    @property
    def run_id(self) -> int:
        """The run's id in the database."""

    @property
    def project_id(self) -> int:
        """The id of its project."""

    @property
    def author_id(self) -> int | None:
        """The id of the user who made it."""

    @property
    def service_account_id(self) -> int | None:
        """The id of the service account that made it."""

    @property
    def deleted(self) -> bool:
        """Whether it is in the trash."""


@dataclass(frozen=True, slots=True)
class ReadableRuns:
    """The runs that a principal may read. All ids are those of the metadata store.

    Args:
        projects: the projects whose runs may be read, except those in the trash.
        trash: the projects whose runs in the trash may be read, too.
        own_trash: the projects of whose runs in the trash only the principal's own may be read.
        author_id: the runs of this user are the principal's own.
        service_account_id: those of this service account that have no author are the principal's own.
        run_id: one more run that may be read, unless it is in the trash: that of a guest link.
    """

    projects: frozenset[int] = frozenset()
    trash: frozenset[int] = frozenset()
    own_trash: frozenset[int] = frozenset()
    author_id: int | None = None
    service_account_id: int | None = None
    run_id: int | None = None

    def has(self, run: PlacedRun) -> bool:
        """Return whether a run may be read."""
        if not run.deleted:
            return run.project_id in self.projects or run.run_id == self.run_id
        if run.project_id in self.trash:
            return True
        if self.author_id is not None:
            own = run.author_id == self.author_id
        else:
            own = run.author_id is None and run.service_account_id == self.service_account_id is not None
        return own and run.project_id in self.own_trash


@dataclass(frozen=True, slots=True)
class Filter:
    """Selects the runs that meet all conditions; an empty filter selects all runs but those in the trash.

    Args:
        project: its name.
        entity: name of the team or user that has the project.
        author: name of the user whose run it is.
        states: in one of these states.
        tags: with all of these tags.
        text: every word occurs in the run's id, name, group, job type, tags, notes or configuration values,
            ignoring case.
        where: predicates that all hold.
        device: used this device, or saw it and may have used it: its UUID, or `<host>/<PCI address>`.
        deleted: runs in the trash instead of those that are not.
        readable: only runs that the principal may read; None: all.
        terms: of a filter text, that all hold; see `filter_text.parse`.

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
    readable: ReadableRuns | None = None
    entity: str | None = None
    author: str | None = None
    terms: tuple[Term, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for an unknown state."""
        for state in self.states:
            if state not in STATES:
                raise ValueError(f"unknown state {state!r}; expected one of {', '.join(STATES)}")

    @property
    def fields(self) -> set[str]:
        """The configuration, summary and system fields that it compares."""
        of_terms = [name for term in self.terms for name in term.fields]
        names = [*(predicate.field for predicate in self.where), *of_terms]
        return {name for name in names if is_field(name)}

    @property
    def needs_findings(self) -> bool:
        """Whether it can only be decided by the findings about a run."""
        return any(predicate.field in run_verdict.FINDING_FIELDS for predicate in self.where) or any(
            term.needs_findings for term in self.terms
        )
