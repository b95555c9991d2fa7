"""A report with all that its panels show, read from a server to be written to a file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from runvitals.base import stored_keys
from runvitals.readers.servers.connection import ApiConnection, ServerError, path_with

_TIMEOUT_S: Final = 60.0
_ADDRESS: Final = re.compile(r"(https?://.+)/[^/]+/[^/]+/reports/[^/]*--([^/?#]+)(?:/edit)?/?(?:[?#].*)?")
MAX_IMAGES: Final = 200
"""Of one report."""
MAX_IMAGE_BYTES: Final = 10 * 1024 * 1024
_IMAGE: Final = "image/"


@dataclass(frozen=True)
class ExportedReport:
    """A report and what it showed at the moment when it was read.

    Attributes:
        report: as the server has it.
        answers: what each panel shows, by its id.
        images: the content of images of blocks and of media, by SHA-256.
    """

    url: str
    report: Mapping[str, Any]
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    images: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The address of its page."""
        names = {name: str(self.report[name]) for name in ("entity", "project", "slug", "id")}
        return self.url + path_with("/{entity}/{project}/reports/{slug}--{id}", names)

    def panels(self, block: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Iterate over the panels of a block, each with what it shows."""
        for panel in block["panels"]:
            yield panel, self.answers.get(panel["id"], {})


def read_report(name: str, url: str | None = None, token: str | None = None) -> ExportedReport:
    """Read a report by its id, or by the address of its page.

    Raises:
        ValueError: there is no server.
        ServerError: there is no such report, or you may not read it.
    """
    match = _ADDRESS.fullmatch(name)
    if match is not None:
        url, name = match[1], match[2]
    server = stored_keys.known_server(url, os.environ)
    key = token if token is not None else stored_keys.token(server, os.environ)
    with closing(ApiConnection(server, key, _TIMEOUT_S)) as connection:
        path = path_with("/reports/{report}", {"report": name})
        report = connection.get(path)
        answers: dict[str, Any] = {}
        images: dict[str, bytes] = {}
        for block in report["blocks"]:
            if block["kind"] == "image":
                images |= _image(connection, f"{path}/files/{block['file']}", block["file"], images)
            elif block["kind"] == "panels":
                for panel in block["panels"]:
                    of_panel = f"{path}/panels/{panel['id']}"
                    answer = answers[panel["id"]] = connection.get(f"{of_panel}/data")
                    for digest in _media(answer):
                        images |= _image(connection, f"{of_panel}/files/{digest}", digest, images)
    return ExportedReport(connection.url, report, answers, images)


def _media(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the SHA-256 of the images among the media of a panel."""
    for record in answer.get("items") or ():
        for item in record["items"]:
            if "sha256" in item and str(item.get("type", "")).startswith(_IMAGE):
                yield item["sha256"]


def _image(
    connection: ApiConnection, path: str, digest: str, images: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Return the content of an image by its SHA-256; nothing if it is gone, or one too many."""
    if digest in images or len(images) >= MAX_IMAGES:
        return {}
    try:
        content = connection.get_file(path)
    except ServerError as error:
        if error.status == 404:
            return {}
        raise
    return {digest: content} if len(content) <= MAX_IMAGE_BYTES else {}
