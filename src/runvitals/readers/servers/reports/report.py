"""Reports as objects: create, load, change, publish and delete them."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from runvitals.base import stored_keys
from runvitals.errors import CommError, UsageError
from runvitals.readers.servers.connection import ApiConnection, ServerError, path_with
from runvitals.readers.servers.reports.blocks import Block, Markdown, Panels, Picture, block_from_json

_TIMEOUT_S: Final = 60.0
_CONFLICT: Final = 409
_ADDRESS: Final = re.compile(r"(https?://.+)/([^/]+)/([^/]+)/reports/[^/]*--([^/?#]+)(?:/edit)?/?(?:[?#].*)?")
"""The address of a report's page: server, entity, project and id."""
_PAGE: Final = "/{entity}/{project}/reports/{slug}--{report}"
_OF_PROJECT: Final = "/entities/{entity}/projects/{project}/reports"


@dataclass(frozen=True)
class ReportConflict:
    """A block that somebody else changed at the same time. None: it was removed."""

    id: str
    current: Mapping[str, Any] | None
    yours: Mapping[str, Any] | None


class ReportChanged(CommError):
    """Somebody else changed the same blocks since the report was loaded; nothing was stored.

    Attributes:
        conflicts: those blocks, with both texts.
        revision: the present one.
    """

    def __init__(self, text: str, revision: int | None, conflicts: Sequence[ReportConflict]) -> None:
        super().__init__(text)
        self.revision = revision
        self.conflicts = list(conflicts)


class Report:
    """A report: a page of text and live panels of a project.

    Args:
        project: `entity/project`.
        title: at most 256 characters.
        description: shown below the title.
        blocks: Markdown as `str`, `Picture` and `Panels`, in their order.
        url: of the server. Default: `RUNVITALS_SERVER`, then the only server of `runvitals login`.
        token: access token. Default: as for `runvitals.Client`.

    Raises:
        UsageError: an invalid project, or there is no server.

    Example:
        >>> from runvitals.reports import Panel, Panels, Report, RunSet
        >>> report = Report("vision/digits", "Which learning rate?")
        >>> report.blocks = [
        ...     "## Result",
        ...     "A rate of **0.1** is best.",
        ...     Panels([Panel("line", "loss"), Panel("bar", "acc")], [RunSet("tag:rates", limit=5)]),
        ... ]
        >>> report.publish().url
        'https://runs.example.org/vision/digits/reports/which-learning-rate--12'
    """

    def __init__(
        self,
        project: str,
        title: str = "Untitled report",
        description: str = "",
        blocks: Sequence[Block] = (),
        url: str | None = None,
        token: str | None = None,
    ) -> None:
        entity, slash, name = project.partition("/")
        if not (entity and slash and name):
            raise UsageError(f"invalid project {project!r}: expected entity/project")
        self._connect(url, token)
        self.entity = entity
        self.project = name
        self.title = title
        self.description = description
        self.blocks: list[Block] = list(blocks)
        self._stored: dict[str, Any] = {}

    def _connect(self, url: str | None, token: str | None) -> None:
        try:
            server = stored_keys.known_server(url, os.environ)
        except ValueError as error:
            raise UsageError(str(error)) from None
        api_key = token if token is not None else stored_keys.token(server, os.environ)
        self._connection = ApiConnection(server, api_key, _TIMEOUT_S)

    @classmethod
    def load(cls, address: str, token: str | None = None) -> Report:
        """Return a report by the address of its page, as it is being written if you may edit it.

        Raises:
            UsageError: not an address of a report.
            ServerError: there is none, or you may not read it.

        Example:
            >>> Report.load("https://runs.example.org/vision/digits/reports/which-rate--12").title
            'Which learning rate?'
        """
        match = _ADDRESS.fullmatch(address)
        if match is None:
            raise UsageError(
                f"invalid address of a report {address!r}: expected https://…/entity/project/reports/title--id"
            )
        report = cls(f"{match[2]}/{match[3]}", url=match[1], token=token)
        report._read(match[4])
        return report

    def _read(self, report_id: str) -> None:
        path = path_with("/reports/{report}", {"report": report_id})
        with closing(self._connection):
            stored = self._connection.get(path)
            if stored["may"]["update"]:
                stored = self._connection.get(path, [("draft", 1)])
        self._take(stored)

    def _take(self, stored: Mapping[str, Any]) -> None:
        self._stored = dict(stored)
        self.entity, self.project = stored["entity"], stored["project"]
        self.title, self.description = stored["title"], stored["description"]
        self.blocks = [block_from_json(block) for block in stored["blocks"]]

    @property
    def id(self) -> int | None:
        """The id; None before the report is saved."""
        return self._stored.get("id")

    @property
    def revision(self) -> int | None:
        """The revision that was loaded or saved last; None before the report is saved."""
        return self._stored.get("revision")

    @property
    def is_published(self) -> bool:
        """Whether others see the report."""
        return self._stored.get("published_revision") is not None

    @property
    def url(self) -> str:
        """The address of the page.

        Raises:
            UsageError: the report was not saved.
        """
        if self.id is None:
            raise UsageError("the report has no address before it is saved")
        names = {"entity": self.entity, "project": self.project, "slug": self._stored["slug"]}
        return self._connection.url + path_with(_PAGE, {**names, "report": str(self.id)})

    def save(self) -> Report:
        """Store the report as a draft: others see what was published before. Returns the report.

        Changes of others to other blocks are merged, and are in `blocks` afterwards.

        Raises:
            ReportChanged: others changed the same blocks. Nothing was stored.
            ServerError: the server rejected the report or is unreachable.
        """
        with closing(self._connection):
            if self.id is None:
                path = path_with(_OF_PROJECT, {"entity": self.entity, "project": self.project})
                head = {"title": self.title, "description": self.description}
                self._stored = dict(self._connection.send("POST", path, {**head, "blocks": []}))
            self._take(self._change(self._document()))
        return self

    def _change(self, document: Mapping[str, Any]) -> Any:
        try:
            body = {"revision": self.revision, **document}
            return self._connection.send("PATCH", f"/reports/{self.id}", body)
        except ServerError as error:
            if error.status != _CONFLICT:
                raise
            raise _conflict(error) from None

    def _document(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "description": self.description,
            "blocks": [self._block(index) for index in range(len(self.blocks))],
        }

    def _block(self, index: int) -> dict[str, Any]:
        block = self.blocks[index]
        if isinstance(block, str):
            block = self.blocks[index] = Markdown(block)
        if isinstance(block, Markdown):
            return {"id": block.id, "kind": "text", "text": block.text}
        if isinstance(block, Panels):
            return block.as_json(self.entity, self.project)
        if block.file is None:
            block.file = self._upload(block)
        names = ("id", "file", "alt", "caption", "width_percent")
        return {"kind": "image", **{name: getattr(block, name) for name in names}}

    def _upload(self, picture: Picture) -> str:
        if picture.path is None:
            raise UsageError("a picture has a path to upload, or a file of the report")
        path = Path(picture.path)
        content_type = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        sent = self._connection.send_bytes(f"/reports/{self.id}/files", path.read_bytes(), content_type)
        return str(sent["file"])

    def publish(self) -> Report:
        """Save the report and show it to everybody who may read reports of the project."""
        self.save()
        self._send("POST", "/publish", {"revision": self.revision})
        self._read(str(self.id))
        return self

    def delete(self) -> None:
        """Move the report to the trash. `restore` brings it back for 30 days."""
        self._send("DELETE", "", None)

    def restore(self) -> None:
        """Take the report out of the trash."""
        self._send("POST", "/restore", {})

    def _send(self, method: str, path: str, body: Any) -> None:
        if self.id is None:
            raise UsageError("the report was not saved")
        with closing(self._connection):
            self._connection.send(method, f"/reports/{self.id}{path}", body)

    def __repr__(self) -> str:
        return f"<Report {self.title!r} of {self.entity}/{self.project}, {len(self.blocks)} blocks>"


def _conflict(error: ServerError) -> ReportChanged:
    names = ("id", "current", "yours")
    conflicts = [
        ReportConflict(**{name: conflict[name] for name in names})
        for conflict in error.content.get("conflicts", ())
    ]
    return ReportChanged(str(error), error.content.get("revision"), conflicts)
