"""`/account/alerts`: what users are notified of the runs whose author they are, and what they muted."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from pydantic import ConfigDict, Field

from runvitals.model.errors import AmbiguousName, UnknownRun
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.access.principals import Principal
from runvitals.server.accounts.routes.own_account import TheOwner
from runvitals.server.alerts.routes.choices import ChosenEvents, EventChoices, with_changes
from runvitals.server.alerts.routes.destinations import OwnSlackChannel
from runvitals.server.alerts.settings import Digest, PersonalAlerts, QuietHours, personal_alerts
from runvitals.server.alerts.storage.alert_settings import AlertSubject, Mode, Scope
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.outside_services import OutsideServices
from runvitals.server.service_parameters import TheAccess, TheOutsideServices, TheRequester, TheServices

_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_MODES: Final[dict[str, Mode | None]] = {"off": "off", "all": "all", "as_above": None}
MAX_LISTED: Final = 500
AnyMode = Literal["off", "as_above", "all"]

router = Router()


class Quiet(RequestBody):
    """Hours of the user's time zone in which nothing is sent. `errors_pass`: alerts of level `error` are."""

    model_config = ConfigDict(strict=True)

    on: bool
    start: str = Field("22:00", max_length=5)
    end: str = Field("07:00", max_length=5)
    errors_pass: bool = True


class AlertExceptionChange(RequestBody):
    """The mode of one team, project or run.

    `name` is `team`, `entity/project` or `entity/project/run`.
    """

    scope: Scope
    name: str = Field(min_length=1, max_length=600)
    mode: AnyMode


class PersonalChange(RequestBody):
    """Changes; a field that is left out stays as it is."""

    events: EventChoices | None = None
    quiet: Quiet | None = None
    digest: Digest | None = None
    daily_at: str | None = Field(None, max_length=5, description="When the daily digest is sent: `08:00`.")
    projects: list[dict[Literal["project", "mode"], str]] | None = Field(None, max_length=MAX_LISTED)
    exceptions: list[AlertExceptionChange] | None = Field(None, max_length=MAX_LISTED)


class QuietHoursSchema(ResponseBody):
    """Hours of the user's time zone in which nothing is sent. `errors_pass`: alerts of level `error` are."""

    on: bool
    start: str
    end: str
    errors_pass: bool


class ProjectAlerts(ResponseBody):
    """The mode of one project."""

    project: str
    mode: Mode


class AlertExceptionSchema(ResponseBody):
    """The mode of one team, project or run.

    `name` is `team`, `entity/project` or `entity/project/run`.
    """

    scope: Scope
    name: str
    mode: Mode


class PersonalAlertsSchema(ResponseBody):
    """A user's events, exceptions and times of notifications."""

    events: ChosenEvents
    quiet: QuietHoursSchema
    digest: Digest
    daily_at: str = Field(description="When the daily digest is sent: `08:00`.")
    time_zone: str
    projects: list[ProjectAlerts] = Field(description="The exceptions of projects.")
    exceptions: list[AlertExceptionSchema]
    mail: bool = Field(description="The server sends mail.")
    slack: OwnSlackChannel | None = Field(description="The user's own channel; None: there is none.")
    slack_app: bool = Field(description="Channels can be chosen at Slack.")


@router.get("/account/alerts", needs("account:read"), response_model=PersonalAlertsSchema)
def alerts(
    access: TheAccess, services: TheServices, outside: TheOutsideServices, owner: TheOwner
) -> dict[str, Any]:
    """Return the events you are notified of, when, and the exceptions for teams, projects and runs."""
    return _show(access, services, outside, owner.id)


@router.put("/account/alerts", needs("account:update"), response_model=PersonalAlertsSchema)
def change_alerts(
    body: PersonalChange,
    access: TheAccess,
    services: TheServices,
    outside: TheOutsideServices,
    owner: TheOwner,
    requester: TheRequester,
) -> dict[str, Any]:
    """Change what you are notified."""
    settings = access.metadata_store.alerts.settings
    before = _choices_of(access, owner.id)
    quiet = before.quiet if body.quiet is None else _quiet(body.quiet)
    daily_at = before.daily_at if body.daily_at is None else _minute("daily_at", body.daily_at)
    listed = [*_exceptions_of(body.projects), *(body.exceptions or [])]
    targets = [
        _target(access, requester.principal, index, exception) for index, exception in enumerate(listed)
    ]
    data = {
        "events": with_changes(before.events, body.events),
        "quiet": {
            "on": quiet.on,
            "start": quiet.start,
            "end": quiet.end,
            "errors_pass": quiet.errors_pass,
        },
        "digest": body.digest or before.digest,
        "daily_at": daily_at,
    }

    def change() -> None:
        settings.put_user(owner.id, data, access.clock())
        for target, exception in zip(targets, listed, strict=True):
            settings.except_from(owner.id, target, _MODES[exception.mode])

    access.accounts.in_one_transaction(change)
    return _show(access, services, outside, owner.id)


def _choices_of(access: AccessControl, user_id: int) -> PersonalAlerts:
    settings = access.metadata_store.alerts.settings.of_users([user_id])
    return personal_alerts(settings.get(user_id, {}))


def _show(
    access: AccessControl, services: TheServices, outside: OutsideServices, user_id: int
) -> dict[str, Any]:
    chosen = _choices_of(access, user_id)
    exceptions = access.metadata_store.alerts.settings.exceptions(user_id)
    slack = access.metadata_store.alerts.destinations.of_user(user_id)
    zone = access.accounts.profiles.get(user_id).fields.get("time_zone") or services.settings()["time_zone"]
    return {
        "events": chosen.events,
        "quiet": {
            "on": chosen.quiet.on,
            "start": _clock_time(chosen.quiet.start),
            "end": _clock_time(chosen.quiet.end),
            "errors_pass": chosen.quiet.errors_pass,
        },
        "digest": chosen.digest,
        "daily_at": _clock_time(chosen.daily_at),
        "time_zone": zone,
        "projects": [
            {"project": exception.name, "mode": exception.mode}
            for exception in exceptions
            if exception.scope == "project"
        ],
        "exceptions": exceptions,
        "mail": services.mailer.configured,
        "slack": slack,
        "slack_app": outside.slack_app.configured,
    }


def _exceptions_of(
    projects: list[dict[Literal["project", "mode"], str]] | None,
) -> list[AlertExceptionChange]:
    exceptions = []
    for index, item in enumerate(projects or []):
        if item.get("mode") not in _MODES:
            raise InvalidFields({f"projects[{index}].mode": f"expected one of {', '.join(_MODES)}"})
        mode: Any = item["mode"]
        exceptions.append(AlertExceptionChange(scope="project", name=item.get("project") or "?", mode=mode))
    return exceptions


def _target(
    access: AccessControl, principal: Principal, index: int, exception: AlertExceptionChange
) -> AlertSubject:
    """Return what an exception names, if the user may know of it or takes it back."""
    parts = exception.name.split("/")
    subject: AlertSubject | None = None
    entity = access.directory.entity_named(parts[0])
    if entity is not None:
        if exception.scope == "team" and len(parts) == 1 and entity.owner_id is None:
            if access.directory.may(principal, Action.TEAM_READ, entity):
                subject = AlertSubject("team", entity.id)
        elif exception.scope == "project" and len(parts) >= 2:
            project = access.directory.project_named(entity.id, "/".join(parts[1:]))
            if project is not None and access.directory.may(principal, Action.PROJECT_READ, project):
                subject = AlertSubject("project", project.id)
        elif exception.scope == "run" and len(parts) >= 3:
            subject = _run(access, principal, parts[0], parts[-1])
    if subject is None:
        raise InvalidFields(
            {f"exceptions[{index}].name": f"there is no {exception.scope} {exception.name[:100]!r}"}
        )
    return subject


def _run(access: AccessControl, principal: Principal, entity: str, uid: str) -> AlertSubject | None:
    try:
        return AlertSubject("run", access.directory.find_run(principal, uid, entity).id)
    except (UnknownRun, AmbiguousName):
        return None


def _quiet(quiet: Quiet) -> QuietHours:
    start, end = _minute("quiet.start", quiet.start), _minute("quiet.end", quiet.end)
    return QuietHours(quiet.on, start, end, quiet.errors_pass)


def _minute(field: str, text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise InvalidFields({field: f"invalid time {text!r}; expected one such as 22:00"})
    return int(match[1]) * 60 + int(match[2])


def _clock_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
