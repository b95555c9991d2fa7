"""What the bell of the page shows a user: their runs, requests to them, and other notifications."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import quote

from runvitals.model.durations import DAY_MS
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.audience import may_read_run
from runvitals.server.alerts.delivery.channel import title_of
from runvitals.server.alerts.receivers import is_muted
from runvitals.server.alerts.storage.alert_settings import AlertException, Scope
from runvitals.server.alerts.storage.inbox import EventOfRun
from runvitals.server.alerts.texts import one_line
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.reports.audience import may_read_report
from runvitals.server.teams.storage.invitations import InvitationRow
from runvitals.server.teams.storage.join_requests import JoinRequestRow

MAX_ITEMS: Final = 50
KEPT_MS: Final = 30 * DAY_MS
_MAX_TEXT: Final = 300
_TITLES: Final[Mapping[str, str]] = {
    "finished": "finished",
    "failed": "failed",
    "crashed": "crashed",
    "lost": "was lost: nothing is heard of it",
    "back": "is back",
}

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class InboxItem:
    """A line of the bell.

    Args:
        id: unique among all of them.
        kind: `run.crashed`, `team.join_request`, `team.invitation`, or the kind of a notification.
        place: what it is about, such as `team/project`; empty if the title says it.
        path: where it leads on this server.
        needs_decision: somebody waits for the user's answer.
    """

    id: str
    kind: str
    level: Level
    title: str
    text: str
    place: str
    path: str | None
    time_ms: int
    needs_decision: bool = False


class Inbox:
    """What the bell shows, read when it is asked for: nothing is written for it but what was seen."""

    def __init__(self, metadata_store: MetadataStore, directory: Directory) -> None:
        self._store = metadata_store
        self._directory = directory

    def items(self, user_id: int, teams: Iterable[int], now_ms: int) -> list[InboxItem]:
        """Return what is new for a user, the newest first; at most `MAX_ITEMS`.

        Args:
            teams: whose requests to join the user may answer.
        """
        items = [
            *self._of_runs(user_id, now_ms),
            *(_of_request(row) for team in teams for row in self._store.accounts.join_requests.of_team(team)),
            *map(_of_invitation, self._store.accounts.invitations.of_user(user_id, now_ms)),
            *self._of_notifications(user_id, now_ms),
        ]
        return sorted(items, key=lambda item: item.time_ms, reverse=True)[:MAX_ITEMS]

    def _of_runs(self, user_id: int, now_ms: int) -> list[InboxItem]:
        events = self._store.alerts.inbox.events_of(user_id, now_ms - KEPT_MS, MAX_ITEMS)
        muted = _Muted(self._store.alerts.settings.exceptions(user_id))
        readable: dict[int, bool] = {}
        items = []
        for event in events:
            if event.run_id not in readable:
                run = self._store.runs.place(event.run_id)
                readable[event.run_id] = run is not None and may_read_run(self._directory, user_id, run)
            if readable[event.run_id] and not muted.has(event):
                items.append(_of_run(event))
        return items

    def _of_notifications(self, user_id: int, now_ms: int) -> list[InboxItem]:
        items = []
        for row in self._store.alerts.inbox.notifications_of(user_id, now_ms - KEPT_MS, MAX_ITEMS):
            accounts = self._store.accounts
            if row.report_id is not None and not may_read_report(
                accounts, self._directory, user_id, row.report_id
            ):
                continue
            title, text = title_of(row.text)
            item = InboxItem(
                f"notification:{row.id}",
                row.kind,
                "info",
                one_line(title),
                one_line(text, _MAX_TEXT),
                "",
                row.path,
                row.created_ms,
            )
            items.append(item)
        return items


class _Muted:
    """The runs of which a user wants no notifications."""

    def __init__(self, exceptions: Iterable[AlertException]) -> None:
        self._modes: dict[tuple[Scope, int], str] = {
            (exception.scope, exception.target_id): exception.mode for exception in exceptions
        }

    def has(self, event: EventOfRun) -> bool:
        targets: dict[Scope, int | None] = {
            "run": event.run_id,
            "project": event.project_id,
            "team": event.entity_id,
        }
        chosen = {scope: self._modes.get((scope, target or 0)) for scope, target in targets.items()}
        return is_muted({scope: mode for scope, mode in chosen.items() if mode is not None})


def _of_run(event: EventOfRun) -> InboxItem:
    name, text = one_line(event.name), ""
    if event.event in _TITLES:
        title = f"{name} {_TITLES[event.event]}"
    else:
        text = one_line(str(event.data.get("text") or ""), _MAX_TEXT)
        title = f"{name}: {one_line(str(event.data.get('title') or text or 'alert'))}"
    level: Level = "error" if event.level == "error" else "warning" if event.level == "warning" else "info"
    project_path = "/".join(filter(None, (event.entity, event.project)))
    path = f"/runs/{quote(event.uid, safe='')}"
    if event.entity is not None:
        path = f"/{quote(event.entity, safe='')}/{quote(event.project, safe='')}{path}"
    return InboxItem(
        f"event:{event.id}",
        f"run.{event.event}",
        level,
        title,
        "" if text in title else text,
        one_line(project_path),
        path,
        event.decided_ms,
    )


def _of_request(row: JoinRequestRow) -> InboxItem:
    title = f"{one_line(row.user_display_name)} asks to join {one_line(row.team_display_name)}"
    return InboxItem(
        f"join-request:{row.id}",
        "team.join_request",
        "info",
        title,
        one_line(row.message, _MAX_TEXT),
        row.team,
        f"/{row.team}/-/settings/members",
        row.created_ms,
        needs_decision=True,
    )


def _of_invitation(row: InvitationRow) -> InboxItem:
    inviter = one_line(row.inviter_name or "An administrator")
    team = "this server" if row.team_display_name is None else f"the team {one_line(row.team_display_name)}"
    return InboxItem(
        f"invitation:{row.id}",
        "team.invitation",
        "info",
        f"{inviter} invites you to {team}",
        "",
        row.team or "",
        "/-/settings/teams",
        row.sent_ms,
        needs_decision=True,
    )
