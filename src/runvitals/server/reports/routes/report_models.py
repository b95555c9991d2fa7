"""The bodies of requests and responses about reports."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from runvitals.model.hidden_characters import without_hidden_characters
from runvitals.server.http.bodies import RequestBody, ResponseBody, page_body
from runvitals.server.reports import document
from runvitals.server.reports.markdown_blocks import MAX_MARKDOWN
from runvitals.server.reports.routes.block_models import Blocks, ReportBlock
from runvitals.server.reports.templates import Template

Title = Annotated[
    str,
    Field(min_length=1, max_length=document.MAX_TITLE),
    AfterValidator(partial(without_hidden_characters, "title")),
]
Description = Annotated[str, Field(max_length=document.MAX_DESCRIPTION)]
ReportNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
Revision = Annotated[int, Field(ge=1, le=2**31 - 1)]


class NewReport(RequestBody):
    """A report to be created: of blocks, of Markdown, or as another report or a template."""

    title: Title | None = Field(None, description="Left out: that of `from`.")
    description: Description = ""
    blocks: Blocks = []
    markdown: str | None = Field(
        None, max_length=MAX_MARKDOWN, description="Instead of blocks: each of its elements becomes one."
    )
    source: ReportNumber | Template | None = Field(
        None,
        alias="from",
        description="Instead of blocks: those of this report that you may read, or of a template.",
    )
    publish: bool = Field(False, description="Show it to readers of the project at once.")


class ReportChanges(RequestBody):
    """Changes of a report. What is left out does not change."""

    revision: Revision = Field(description="That the changes were made to.")
    title: Title | None = None
    description: Description | None = None
    blocks: Blocks | None = Field(None, description="All blocks of the report.")


class DuplicatedReport(RequestBody):
    """Where the copy of a report is created, and what it is called."""

    entity: str | None = Field(
        None, max_length=64, description="Left out, with `project`: where the report is."
    )
    project: str | None = Field(None, max_length=256)
    title: Title | None = None


class PublishedRevision(RequestBody):
    """The revision that readers see from now on."""

    revision: Revision


class ReportRights(ResponseBody):
    """What the requester may do with a report."""

    update: bool
    delete: bool
    share: bool
    share_public: bool
    comment: bool
    follow: bool


class ListedReport(ResponseBody):
    """A report in a list."""

    id: int
    slug: str = Field(description="Of its page: `/{entity}/{project}/reports/{slug}--{id}`.")
    entity: str
    project: str
    author: str | None = Field(description="None: the author's account was deleted.")
    service_account: str | None
    title: str
    description: str
    state: Literal["draft", "published"]
    revision: int = Field(description="Of the working copy.")
    published_revision: int | None
    published_ms: int | None
    created_ms: int
    changed_ms: int
    deleted_ms: int | None
    unpublished_changes: bool
    starred: bool
    followed: bool


ReportsPage = page_body(
    "ReportsPage", "A page of reports, the one that changed last first.", reports=list[ListedReport]
)


class ReportSchema(ListedReport):
    """A report with its blocks."""

    shown_revision: int = Field(description="That the blocks are of.")
    blocks: list[ReportBlock]
    html: dict[str, str] = Field(description="The blocks of text as HTML, by their ids.")
    may: ReportRights


class MergedReport(ReportSchema):
    """A report after a change."""

    others: list[str] = Field(description="Blocks that others changed since the revision of the request.")


class ReportVersionSchema(ResponseBody):
    """A version of a report."""

    revision: int
    author: str | None = Field(description="None: a service account, or the author's account was deleted.")
    created_ms: int
    is_published: bool = Field(description="It is or was what readers see.")


ReportVersionsPage = page_body(
    "ReportVersionsPage",
    "A page of versions, the newest first: of each author the last of ten minutes.",
    versions=list[ReportVersionSchema],
)


class ReportTextChange(ResponseBody):
    """A text before and after an edit."""

    before: str
    after: str


class ReportBlockChange(ResponseBody):
    """A block before and after an edit. None: it was not there."""

    id: str
    before: ReportBlock | None
    after: ReportBlock | None


class ReportOrderChange(ResponseBody):
    """The ids of all blocks before and after an edit."""

    before: list[str]
    after: list[str]


class ReportEdit(ResponseBody):
    """What you changed in one revision of a report, without what you have taken back since."""

    revision: int
    created_ms: int
    title: ReportTextChange | None
    description: ReportTextChange | None
    blocks: list[ReportBlockChange]
    order: ReportOrderChange | None = Field(description="None: no block was added, removed or moved.")


ReportEditsPage = page_body(
    "ReportEditsPage", "A page of your edits, the newest first.", edits=list[ReportEdit]
)
