"""What the tables of reports hold, and what can be wrong with a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from runvitals.server.reports.document import Document
from runvitals.server.reports.merge import Conflict
from runvitals.store.errors import NotFound

ShareRole = Literal["view", "edit"]


@dataclass(frozen=True, slots=True)
class ReportAuthor:
    """Who makes or changes a report: a user, or a service account. Both None: the author left."""

    user_id: int | None = None
    service_account_id: int | None = None


@dataclass(frozen=True, slots=True)
class ReportRow:
    """A report without its document.

    Attributes:
        author: the name of its author; None if there is none any more, or it is a service account.
        service_account: the name of the service account that made it.
        title, description: of the published revision; of a draft, those of the working copy.
        head_revision: of the working copy.
        published_revision: what readers see; None: it is a draft.
    """

    id: int
    project_id: int
    project: str
    entity_id: int
    entity: str
    author_id: int | None
    author: str | None
    service_account_id: int | None
    service_account: str | None
    title: str
    description: str
    head_revision: int
    published_revision: int | None
    published_ms: int | None
    created_ms: int
    changed_ms: int
    deleted_ms: int | None

    @property
    def is_draft(self) -> bool:
        """Whether only its author sees it, and those it is shared with."""
        return self.published_revision is None


@dataclass(frozen=True, slots=True)
class ReportVersion:
    """A revision of a report."""

    revision: int
    author: str | None
    created_ms: int
    is_published: bool


@dataclass(frozen=True, slots=True)
class ReportMarks:
    """Ids of the reports that a user has starred, and of those that the user follows."""

    starred: frozenset[int] = frozenset()
    followed: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SavedReport:
    """A report after a change. `others`: blocks that somebody else has changed since the base revision."""

    row: ReportRow
    document: Document
    others: Sequence[str]


class UnknownReport(NotFound):
    """There is no such report."""

    def __init__(self, report_id: int) -> None:
        super().__init__(f"there is no report {report_id}")


class ReportEdited(ValueError):
    """Others have changed the same blocks since the base revision; nothing was stored.

    Attributes:
        row: the report as it is now.
        conflicts: those blocks. Empty: the base revision is not kept any more, or was never there.
        document: the present one.
    """

    def __init__(self, row: ReportRow, conflicts: Sequence[Conflict], document: Document) -> None:
        names = ", ".join(conflict.id for conflict in conflicts[:5])
        what = f"others changed the same blocks ({names})" if conflicts else "the base revision is not kept"
        super().__init__(f"{what}: the report has revision {row.head_revision} now")
        self.row = row
        self.conflicts = conflicts
        self.document = document
