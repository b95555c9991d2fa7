"""Automations of teams: an event, a filter, and what is done then.

>>> automation = automation_of({
...     "event": {"kind": "run.state", "states": ["failed", "crashed"]},
...     "filter": {"projects": ["digits"]},
...     "actions": [{"kind": "slack", "destination": 3}],
... })
>>> failed = EventFacts("run.state", "run:12", "12:failed:1", project="digits", state="failed")
>>> matches(automation, failed)
True
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from runvitals.base.regular_expressions import finder
from runvitals.model.run_verdict import FINDING_IDS
from runvitals.server.alerts.plain_errors import plain_error
from runvitals.server.alerts.rules import FINDING_SEVERITIES

MAX_COOLDOWN_H: Final = 168
_MAX_PATTERN: Final = 200
_MAX_ACTIONS: Final = 10
_MAX_DESCRIPTION: Final = 1000
_MAX_WINDOW: Final = 100

Pattern = Annotated[str, Meta(max_length=_MAX_PATTERN)]
Name = Annotated[str, Meta(min_length=1, max_length=256)]
Id = Annotated[int, Meta(ge=1, le=2**31 - 1)]
Window = Annotated[int, Meta(ge=1, le=_MAX_WINDOW)]
State = Literal["running", "finished", "failed", "crashed", "stopped", "lost"]
Direction = Literal["up", "down", "either"]
FindingNames = Annotated[tuple[str, ...], Meta(max_length=len(FINDING_IDS))]
FindingSeverity = Literal["info", "warning", "critical"]


class InvalidAutomation(ValueError):
    """An automation cannot be stored.

    Attributes:
        field: where it is wrong, such as `event.value`.
    """

    def __init__(self, field: str, text: str) -> None:
        super().__init__(text)
        self.field = field


class _Part(Struct, tag_field="kind", forbid_unknown_fields=True, frozen=True):
    """An event or an action, by its kind."""


class StateReached(_Part, tag="run.state", frozen=True):
    """A run reached one of some states."""

    states: Annotated[tuple[State, ...], Meta(min_length=1, max_length=6)]


class TagAdded(_Part, tag="run.tag", frozen=True):
    """A run got a tag. `tag`: a regular expression."""

    tag: Pattern


class MetricThreshold(_Part, tag="metric.threshold", frozen=True):
    """A logged metric, over its last points, compares to a value."""

    metric: Name
    value: float
    comparison: Literal[">", ">=", "<", "<=", "=", "!="] = ">"
    statistic: Literal["last", "min", "mean", "max"] = "last"
    window: Window = 1


class MetricChange(_Part, tag="metric.change", frozen=True):
    """The mean of the last `window` points differs from that of the `before` points before them.

    Attributes:
        amount: by at least this; a fraction of the mean before if `relative`.
    """

    metric: Name
    amount: Annotated[float, Meta(gt=0)]
    relative: bool = True
    direction: Direction = "either"
    window: Window = 10
    before: Window = 50


class MetricZScore(_Part, tag="metric.z_score", frozen=True):
    """A point is `value` standard deviations away from the last `window` points of the project's runs."""

    metric: Name
    value: Annotated[float, Meta(gt=0)] = 3.0
    direction: Direction = "either"
    window: Annotated[int, Meta(ge=2, le=_MAX_WINDOW)] = 30


class VersionLogged(_Part, tag="artifact.version", frozen=True):
    """A version of an artifact was logged. `collection`, `type`: regular expressions."""

    collection: Pattern = ""
    type: Pattern = ""


class AliasAdded(_Part, tag="artifact.alias", frozen=True):
    """A version of an artifact got an alias. Both are regular expressions."""

    alias: Pattern
    collection: Pattern = ""


class RegistryLink(_Part, tag="registry.link", frozen=True):
    """A version was linked to a collection of a registry. `collection`: a regular expression."""

    collection: Pattern = ""


class AliasRequested(_Part, tag="registry.request", frozen=True):
    """Somebody asked for a protected alias of a version. Both are regular expressions."""

    alias: Pattern = ""
    collection: Pattern = ""


class RuleFired(_Part, tag="finding", frozen=True):
    """A metric rule fired. `name`: a regular expression."""

    name: Pattern = ""


class DeviceSilent(_Part, tag="device.silent", frozen=True):
    """A rule found that nothing arrives of a device, a host or the training. `host`: a regular expression."""

    host: Pattern = ""


class UsageThreshold(_Part, tag="usage.threshold", frozen=True):
    """The team used a part of what its plan allows, as the usage alerts of the organisation find it.

    Attributes:
        percent: at least this part.
    """

    percent: Annotated[int, Meta(ge=1, le=1000)] = 85


class OpenedFinding(_Part, tag="finding.opened", frozen=True):
    """Something is found to be wrong with a run.

    Attributes:
        findings: ids; none: any.
        severity: at least this one.
    """

    findings: FindingNames = ()
    severity: FindingSeverity = "warning"


class ClosedFinding(_Part, tag="finding.closed", frozen=True):
    """What was found to be wrong with a run is over, or the run has ended. Attributes as `OpenedFinding`."""

    findings: FindingNames = ()
    severity: FindingSeverity = "warning"


class ReportPublished(_Part, tag="report.published", frozen=True):
    """A report was published, for the first time or anew. `title`: a regular expression."""

    title: Pattern = ""


class ReportCommented(_Part, tag="report.commented", frozen=True):
    """Somebody commented on a report. `title`: of the report, a regular expression."""

    title: Pattern = ""


Event = (
    StateReached
    | TagAdded
    | MetricThreshold
    | MetricChange
    | MetricZScore
    | VersionLogged
    | AliasAdded
    | RegistryLink
    | AliasRequested
    | RuleFired
    | DeviceSilent
    | UsageThreshold
    | OpenedFinding
    | ClosedFinding
    | ReportPublished
    | ReportCommented
)
MetricEvent = MetricThreshold | MetricChange | MetricZScore


class AutomationFilter(Struct, forbid_unknown_fields=True, frozen=True):
    """Which runs and artifacts an automation is about; what is empty excludes none.

    Attributes:
        run_name: a regular expression that the name of the run contains.
        author: the user name of the run's author.
        tag: a tag of the run.
    """

    projects: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    run_name: Pattern = ""
    author: Annotated[str, Meta(max_length=64)] = ""
    tag: Annotated[str, Meta(max_length=256)] = ""


class TellSlack(_Part, tag="slack", frozen=True):
    """Post to a Slack destination of the team."""

    destination: Id


class CallWebhook(_Part, tag="webhook", frozen=True):
    """Post to a webhook of the team. `payload`: a template; None: that of the webhook."""

    webhook: Id
    payload: str | None = None


class TellApprise(_Part, tag="apprise", frozen=True):
    """Send a message to what the team reaches by Apprise."""

    destination: Id


class MailMembers(_Part, tag="mail", frozen=True):
    """Mail members of the team, by their names."""

    members: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=50)]


class StopRun(_Part, tag="stop", frozen=True):
    """Ask the run to stop."""


class TagRun(_Part, tag="tag", frozen=True):
    """Add a tag to the run."""

    tag: Name


class RunCommand(_Part, tag="command", frozen=True):
    """Have the hosts of the run run a command that their users registered by this name."""

    command: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


Action = TellSlack | CallWebhook | TellApprise | MailMembers | StopRun | TagRun | RunCommand
_EVENTS: Final[tuple[type[Struct], ...]] = get_args(Event)
_ACTIONS: Final[tuple[type[Struct], ...]] = get_args(Action)
_OF_RUNS: Final = (
    StateReached,
    TagAdded,
    MetricThreshold,
    MetricChange,
    MetricZScore,
    RuleFired,
    DeviceSilent,
    OpenedFinding,
    ClosedFinding,
)
"""Events of runs: only these can stop or tag one."""
_OF_REGISTRIES: Final = (RegistryLink, AliasAdded, AliasRequested)


class Automation(Struct, forbid_unknown_fields=True, frozen=True):
    """An event, a filter, and what is done.

    Attributes:
        cooldown_h: for how many hours it does not act again on the same run or artifact.
        description: for those who read it.
    """

    event: Event
    actions: Annotated[tuple[Action, ...], Meta(min_length=1, max_length=_MAX_ACTIONS)]
    filter: AutomationFilter = AutomationFilter()
    cooldown_h: Annotated[int, Meta(ge=0, le=MAX_COOLDOWN_H)] = 24
    description: Annotated[str, Meta(max_length=_MAX_DESCRIPTION)] = ""

    @property
    def kind(self) -> str:
        """The kind of its event."""
        return kind_of(self.event)


@dataclass(frozen=True, slots=True)
class EventFacts:
    """Facts about an event that happened: those that filters look at, and the values of templates.

    Attributes:
        kind: of the event.
        subject: what it happened to, such as `run:12`, for the cool-down.
        key: the same whenever the same event is reported.
        name: of the run; the rest is empty where the event is not of this kind.
        values: those of payload templates.
    """

    kind: str
    subject: str
    key: str
    time_ms: int = 0
    project: str = ""
    name: str = ""
    author: str = ""
    tags: tuple[str, ...] = ()
    state: str = ""
    tag: str = ""
    alias: str = ""
    collection: str = ""
    type: str = ""
    rule: str = ""
    host: str = ""
    percent: int = 0
    finding: str = ""
    finding_severity: str = ""
    title: str = ""
    automation_id: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


def automation_of(definition: Mapping[str, Any]) -> Automation:
    """Return an automation from its JSON form.

    Raises:
        InvalidAutomation: it is invalid.
    """
    try:
        automation = msgspec.convert(definition, Automation)
    except msgspec.ValidationError as error:
        field, text = plain_error(error)
        field = field or "event"
        allowed = _allowed_kinds(field) or _allowed_fields(definition, field)
        raise InvalidAutomation(field, text + allowed) from None
    for name, part in (("event", automation.event), ("filter", automation.filter)):
        for attribute in ("tag", "collection", "type", "alias", "name", "host", "title", "run_name"):
            is_pattern = name == "event" or attribute == "run_name"
            pattern = getattr(part, attribute, "") if is_pattern else ""
            if pattern:
                _checked_pattern(f"{name}.{attribute}", pattern)
    if isinstance(automation.event, (OpenedFinding, ClosedFinding)):
        _check_findings(automation.event.findings)
    changes_run = any(isinstance(action, (StopRun, TagRun, RunCommand)) for action in automation.actions)
    if changes_run and not isinstance(automation.event, _OF_RUNS):
        raise InvalidAutomation(
            "actions", "only an automation about runs can stop or tag a run or run a command"
        )
    of_runs = automation.filter.run_name or automation.filter.tag
    if isinstance(automation.event, (ReportPublished, ReportCommented)) and of_runs:
        raise InvalidAutomation("filter", "a report has no run; expected projects and author only")
    if isinstance(automation.event, UsageThreshold) and automation.filter != AutomationFilter():
        raise InvalidAutomation("filter", "the usage of a team belongs to no run; expected no filter")
    return automation


def check_about_registries(automation: Automation, about_one: bool) -> None:
    """Check an automation of the organisation, which has registries only.

    Args:
        about_one: it is about one of them.

    Raises:
        InvalidAutomation: it is about something else.
    """
    if not isinstance(automation.event, _OF_REGISTRIES):
        kinds = ", ".join(str(part.__struct_config__.tag) for part in _OF_REGISTRIES)
        raise InvalidAutomation(
            "event.kind", f"the organisation has registries only; expected one of {kinds}"
        )
    if about_one and automation.filter.projects:
        raise InvalidAutomation("filter.projects", "it is about one registry; expected no projects")


def _check_findings(ids: Iterable[str]) -> None:
    unknown = next((name for name in ids if name not in FINDING_IDS), None)
    if unknown is not None:
        allowed = f"expected some of {', '.join(FINDING_IDS)}"
        raise InvalidAutomation("event.findings", f"there is no finding {unknown[:60]!r}; {allowed}")


def _allowed_kinds(field: str) -> str:
    """Return which kinds there are, for the text about an unknown one."""
    if field.rpartition(".")[2] != "kind":
        return ""
    kinds = _EVENTS if field == "event.kind" else _ACTIONS
    return f"; expected one of {', '.join(str(part.__struct_config__.tag) for part in kinds)}"


def _allowed_fields(definition: Mapping[str, Any], field: str) -> str:
    """Return which fields an event or action has, for the text about an unknown or missing one."""
    part: Any = definition
    for name in re.findall(r"\w+", field):
        part = part[int(name)] if name.isdigit() else part.get(name)
        if not isinstance(part, dict | list):
            return ""
    kind = part.get("kind") if isinstance(part, dict) else None
    of_kind = next((each for each in (*_EVENTS, *_ACTIONS) if each.__struct_config__.tag == kind), None)
    return "" if of_kind is None else f"; expected {', '.join(('kind', *of_kind.__struct_fields__))}"


def as_json(automation: Automation) -> dict[str, Any]:
    """Return the JSON form of an automation, with everything that was left out."""
    form: dict[str, Any] = msgspec.to_builtins(automation)
    return form


def kind_of(event: Event) -> str:
    """Return the kind of an event."""
    return str(event.__struct_config__.tag)


def matches(automation: Automation, facts: EventFacts) -> bool:
    """Return whether an automation acts on something that happened, apart from its cool-down."""
    if facts.kind != automation.kind:
        return False
    if facts.automation_id is not None:  # evaluated for one automation: metrics
        return fits(automation.filter, facts)
    return _is_meant(automation.event, facts) and fits(automation.filter, facts)


def fits(automation_filter: AutomationFilter, facts: EventFacts) -> bool:
    """Return whether a filter lets something through."""
    return (
        (not automation_filter.projects or facts.project in automation_filter.projects)
        and (not automation_filter.author or facts.author == automation_filter.author)
        and (not automation_filter.tag or automation_filter.tag in facts.tags)
        and _has_match(automation_filter.run_name, facts.name)
    )


def _is_meant(event: Event, facts: EventFacts) -> bool:
    if isinstance(event, StateReached):
        return facts.state in event.states
    if isinstance(event, UsageThreshold):
        return facts.percent >= event.percent
    if isinstance(event, (OpenedFinding, ClosedFinding)):
        severities = FINDING_SEVERITIES.index
        is_meant = not event.findings or facts.finding in event.findings
        return is_meant and severities(facts.finding_severity) >= severities(event.severity)
    pairs: tuple[tuple[str, str], ...] = ()
    if isinstance(event, TagAdded):
        pairs = ((event.tag, facts.tag),)
    elif isinstance(event, VersionLogged):
        pairs = ((event.collection, facts.collection), (event.type, facts.type))
    elif isinstance(event, (AliasAdded, AliasRequested)):
        pairs = ((event.alias, facts.alias), (event.collection, facts.collection))
    elif isinstance(event, RegistryLink):
        pairs = ((event.collection, facts.collection),)
    elif isinstance(event, RuleFired):
        pairs = ((event.name, facts.rule),)
    elif isinstance(event, DeviceSilent):
        pairs = ((event.host, facts.host),)
    elif isinstance(event, (ReportPublished, ReportCommented)):
        pairs = ((event.title, facts.title),)
    return all(_has_match(pattern, text) for pattern, text in pairs)


def _has_match(pattern: str, text: str) -> bool:
    return not pattern or _finder(pattern)(text)


@lru_cache(maxsize=256)
def _finder(pattern: str) -> Callable[[str], bool]:
    return finder(pattern)


def _checked_pattern(field: str, pattern: str) -> None:
    try:
        _finder(pattern)
    except ValueError as error:
        raise InvalidAutomation(field, str(error)) from None
