"""Refused requests in the audit log: changes that were not allowed, and keys used beyond what they allow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from runvitals.model.durations import DAY_MS, MINUTE_MS
from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.principals import SCOPE_ACTIONS, Principal, ServiceAccount, User
from runvitals.server.access.resources import Entity, Member, Project, ProjectItem, Registry, Resource
from runvitals.server.audit.storage.audit import Actor, AuditFilter

if TYPE_CHECKING:
    from runvitals.server.metadata_store import MetadataStore

RECORDED_PER_MINUTE: Final = 10
"""How many refusals of one action by one actor are recorded within a minute; the others are counted."""
_OUT_OF_SCOPE: Final = "key.refused_scope"
_MAX_KEYS: Final = 10_000


@dataclass(slots=True)
class _Minute:
    """Refusals of one action by one actor within a minute."""

    actor: Actor
    since_ms: int
    count: int = 0


class Refusals:
    """Records refused requests. Thread-safe; reads and writes the database.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._metadata_store = metadata_store
        self._clock = clock
        self._lock = threading.Lock()
        self._minutes: dict[tuple[str, int | None, str], _Minute] = {}
        self._days: dict[str, int] = {}

    def change_denied(self, actor: Actor, permission: str, resource: Resource) -> None:
        """Record that an actor may not do a change, though they may read what it is about."""
        key = actor.kind, actor.id, permission
        with self._lock:
            minute = self._minutes.setdefault(key, _Minute(actor, self._clock()))
            minute.count += 1
            if minute.count > RECORDED_PER_MINUTE:
                return
        about = {"permission": permission, "status": 403}
        self._record(actor, permission.replace(":", "."), after=about, **self._owners_of(resource))

    def key_out_of_scope(self, actor: Actor, permission: str, resource: Resource) -> None:
        """Record that a key was used for what its owner may do but the key may not: once a day for each."""
        today = self._clock() // DAY_MS
        name = actor.key_public_id or f"{actor.kind} {actor.id}"
        with self._lock:
            if self._days.get(name) == today:
                return
            if len(self._days) >= _MAX_KEYS:
                self._days.clear()
            self._days[name] = today
        if actor.key_public_id is not None and self._recorded_since(actor.key_public_id, today * DAY_MS):
            return  # by another process, or before a restart
        about = {"permission": permission}
        self._record(
            actor, _OUT_OF_SCOPE, target=actor.key_public_id, after=about, **self._owners_of(resource)
        )

    def write_counts(self) -> None:
        """Record how many refusals of the minutes that are over were only counted."""
        now_ms = self._clock()
        with self._lock:
            before_ms = now_ms - MINUTE_MS
            over = [(key, minute) for key, minute in self._minutes.items() if minute.since_ms <= before_ms]
            for key, _ in over:
                del self._minutes[key]
        for (_, _, permission), minute in over:
            if minute.count > RECORDED_PER_MINUTE:
                further = minute.count - RECORDED_PER_MINUTE
                about = {"permission": permission, "status": 403, "further": further}
                actor = replace(minute.actor, request_id=None)
                self._record(actor, permission.replace(":", "."), after=about)

    def _recorded_since(self, key_public_id: str, from_ms: int) -> bool:
        events = AuditFilter(action=_OUT_OF_SCOPE, key_public_id=key_public_id, from_ms=from_ms)
        return bool(self._metadata_store.accounts.audit.page(events, 1))

    def _record(self, actor: Actor, action: str, **about: Any) -> None:
        self._metadata_store.accounts.audit.record(self._clock(), actor, action, outcome="denied", **about)

    def _owners_of(self, resource: Resource) -> dict[str, Any]:
        """Return the team or user, the project and the run that a resource belongs to, or is."""
        if isinstance(resource, (Member, Registry)):
            return self._owners_of(resource.team)
        if isinstance(resource, Entity):
            name = self._metadata_store.accounts.entity_names([resource.id]).get(resource.id)
            return {} if name is None else {"entity": (resource.id, name)}
        if isinstance(resource, ProjectItem):
            run = self._metadata_store.runs.place(resource.id) if resource.kind == "run" else None
            return {**self._owners_of(resource.project), **({} if run is None else {"run": run.uid})}
        if not isinstance(resource, Project):
            return {}
        owners = self._owners_of(resource.entity)
        try:
            return {
                **owners,
                "project": self._metadata_store.accounts.project_members.get(resource.id).name,
            }
        except UnknownProject:  # removed a moment ago
            return owners


def beyond_key(principal: Principal, action: Action) -> str:
    """Return what a refusal adds if the key would not allow it to anybody."""
    key = principal.key if isinstance(principal, (User, ServiceAccount)) else None
    if key is None or action in SCOPE_ACTIONS[key.scope]:
        return ""
    return f", which a key of the scope {key.scope.value} does not have"
