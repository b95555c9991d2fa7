"""The versions of reports: all recent ones, to merge with, and of older ones those that tell the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, and_, delete, select

from runvitals.model.durations import MINUTE_MS
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.reports import report_version
from runvitals.server.reports.storage.rows import ReportVersion

KEPT_TO_MERGE: Final = 50
"""So many of the newest versions are all kept: others may be editing them."""
MAX_VERSIONS: Final = 500
"""Of a report, without those that were published."""
_SLOT_MS: Final = 10 * MINUTE_MS


def versions_of(connection: Connection, report_id: int) -> list[ReportVersion]:
    """Return all versions of a report, the newest first."""
    statement = (
        select(
            report_version.c.revision,
            entity.c.name.label("author"),
            report_version.c.created_ms,
            report_version.c.is_published,
        )
        .select_from(report_version)
        .outerjoin(user_account, user_account.c.id == report_version.c.author_id)
        .outerjoin(entity, and_(entity.c.id == user_account.c.entity_id, user_account.c.deleted_ms.is_(None)))
        .where(report_version.c.report_id == report_id)
        .order_by(report_version.c.revision.desc())
    )
    return [ReportVersion(**row._asdict()) for row in connection.execute(statement)]


def coalesced(versions: Sequence[ReportVersion]) -> list[ReportVersion]:
    """Return of each author the last version of ten minutes, and those that were published.

    Args:
        versions: the newest first.
    """
    kept: list[ReportVersion] = []
    for version in versions:
        if not kept or version.is_published or _slot(version) != _slot(kept[-1]):
            kept.append(version)
    return kept


def prune_versions(connection: Connection, report_id: int, head: int) -> None:
    """Remove old versions that the history does not show.

    Args:
        head: the newest revision.
    """
    versions = versions_of(connection, report_id)
    listed_versions = coalesced(versions)
    oldest = [version.revision for version in listed_versions if not version.is_published][MAX_VERSIONS:]
    kept = {version.revision for version in listed_versions} - set(oldest)
    removed = [
        version.revision
        for version in versions
        if version.revision <= head - KEPT_TO_MERGE and version.revision not in kept
    ]
    if removed:
        same = (report_version.c.report_id == report_id, report_version.c.revision.in_(removed))
        connection.execute(delete(report_version).where(*same))


def _slot(version: ReportVersion) -> tuple[str | None, int]:
    return version.author, version.created_ms // _SLOT_MS
