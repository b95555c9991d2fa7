"""Who may read a report, and who is notified of news about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.resources import ProjectItem
from runvitals.server.account_store import AccountStore
from runvitals.server.reports.shares import actions_of_share
from runvitals.server.reports.storage.rows import ReportRow
from runvitals.store.errors import NotFound

_MAX_MENTIONS: Final = 50


def may_read_report(accounts: AccountStore, directory: Directory, user_id: int, report_id: int) -> bool:
    """Return whether a user may read a report now."""
    try:
        return readers_of(accounts, directory, accounts.reports.get(report_id), [user_id]) == [user_id]
    except NotFound:
        return False


def readers_of(
    accounts: AccountStore, directory: Directory, row: ReportRow, user_ids: Iterable[int]
) -> list[int]:
    """Return those of some users who may read a report now."""
    readers = []
    try:
        project = directory.project(row.project_id)
    except (UnknownProject, NotFound):
        return []
    for user_id in dict.fromkeys(user_ids):
        user = directory.user(user_id)
        role = accounts.reports.share_role(row.id, user_id)
        shared = actions_of_share(role, row.is_draft)
        item = ProjectItem(
            "report",
            row.id,
            project,
            row.author_id,
            row.service_account_id,
            row.deleted_ms is not None,
            row.is_draft,
            shared,
        )
        if user is not None and directory.may(user, Action.REPORT_READ, item):
            readers.append(user_id)
    return readers


def mentioned_readers(
    accounts: AccountStore, directory: Directory, row: ReportRow, names: Collection[str]
) -> dict[str, int]:
    """Return the ids of the users of these names who may read a report."""
    ids = {}
    for name in sorted(names)[:_MAX_MENTIONS]:
        try:
            ids[name] = accounts.users.by_name(name).id
        except NotFound:
            continue
    readers = set(readers_of(accounts, directory, row, ids.values()))
    return {name: user_id for name, user_id in ids.items() if user_id in readers}
