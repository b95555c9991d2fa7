"""The rules of projects, kept for some seconds: doors need them for every request."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

import anyio.to_thread
from starlette.types import Scope

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.doors.routing import (
    DEFAULT_RULES,
    InvalidRules,
    NamedPlace,
    RoutingRules,
    checked_rules,
)
from runvitals.server.metadata_store import MetadataStore

KEPT_S: Final = 5.0
_MAX_KEPT: Final = 10_000


class _Kept(NamedTuple):
    rules: RoutingRules
    until_s: float


class ProjectRules:
    """Finds the rules of projects.

    Args:
        monotonic: seconds that only grow.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metadata_store = metadata_store
        self._directory = directory
        self._monotonic = monotonic
        self._kept: dict[tuple[str | int | None, str], _Kept] = {}

    async def of(self, scope: Scope, address: NamedPlace) -> RoutingRules:
        """Return the rules of the project that an authenticated request names.

        They are the defaults if it names none.
        """
        if address.project is None:
            return DEFAULT_RULES
        whose = address.entity or home_of(scope)
        kept_rules = self._kept.get((whose, address.project))
        if kept_rules is not None and self._monotonic() < kept_rules.until_s:
            return kept_rules.rules
        rules = await anyio.to_thread.run_sync(self._read, whose, address.project)
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[whose, address.project] = _Kept(rules, self._monotonic() + KEPT_S)
        return rules

    def _read(self, whose: str | int | None, project: str) -> RoutingRules:
        if isinstance(whose, str):
            entity = self._directory.entity_named(whose.lower())
            if entity is None:
                return DEFAULT_RULES
            whose = entity.id
        stored = self._metadata_store.routing_rules.of_project(whose, project)
        try:
            return checked_rules(stored.rules)
        except InvalidRules:  # a later version of runvitals stored them
            return DEFAULT_RULES


def home_of(scope: Scope) -> int | None:
    """Return the team or user that gets what a key sends without naming one."""
    requester: Requester | None = scope.get(SCOPE_KEY)
    principal = None if requester is None else requester.principal
    return principal.home if isinstance(principal, (User, ServiceAccount)) else None
