"""Removes teams, projects and reports whose time in the trash is over, and what deleted users owned."""

from __future__ import annotations

import logging
from collections.abc import Callable

from runvitals.model.durations import DAY_MS
from runvitals.server.audit.storage.audit import SYSTEM
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults

log = logging.getLogger("runvitals.server")


class AccountTrash:
    """The trash of teams and projects.

    Args:
        remove_runs: removes runs that are in the trash for good, with their samples.
    """

    def __init__(self, metadata_store: MetadataStore, remove_runs: Callable[[list[int]], None]) -> None:
        self._metadata_store = metadata_store
        self._remove_runs = remove_runs

    def empty(self, now_ms: int) -> None:
        """Remove what is due. The spaces of deleted users have no waiting period."""
        accounts = self._metadata_store.accounts
        before_ms = now_ms - with_defaults(accounts.settings.all())["trash_days"] * DAY_MS
        reports = accounts.reports.purge_trashed(before_ms)
        projects = accounts.owned_projects.trashed_before(before_ms)
        for project_id in projects:
            self._remove_project(project_id, now_ms)
        teams = accounts.teams.trashed_before(before_ms)
        for team in teams:
            self._remove_projects_of(team.id, now_ms)
            accounts.teams.purge(team.id, SYSTEM, now_ms)
        spaces = accounts.deleted_spaces()
        for entity_id in spaces:
            self._remove_projects_of(entity_id, now_ms)
            accounts.purge_space(entity_id, SYSTEM, now_ms)
        removed = {
            "reports": reports,
            "projects": len(projects),
            "teams": len(teams),
            "spaces": len(spaces),
        }
        if any(removed.values()):
            log.info("removed what was in the trash of accounts", extra={"fields": removed})

    def _remove_projects_of(self, entity_id: int, now_ms: int) -> None:
        for project_id in self._metadata_store.accounts.owned_projects.ids_of(entity_id):
            self._remove_project(project_id, now_ms)

    def _remove_project(self, project_id: int, now_ms: int) -> None:
        owned = self._metadata_store.accounts.owned_projects
        runs = owned.run_ids(project_id)
        if runs:
            self._metadata_store.runs.delete(runs, now_ms)
            self._remove_runs(runs)
        owned.purge(project_id, SYSTEM, now_ms)
