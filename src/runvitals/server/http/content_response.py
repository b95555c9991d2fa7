"""The content of a file as a response: with ranges, a type from the content, and nothing that could run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote

from fastapi import HTTPException, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from runvitals.model.media_types import BINARY, PLAIN_TEXT
from runvitals.server.http.response_memory import BLOCK_BYTES
from runvitals.server.http.same_origin import FRAMED_POLICY, INERT_POLICY
from runvitals.server.library.run_library import OpenedContent

_BLOCK_BYTES: Final = 256 * 1024
_RANGE: Final = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_UNSAFE: Final = re.compile(r'[\x00-\x1f\x7f-\x9f"\\/:*?<>|\u200e\u200f\u202a-\u202e\u2066-\u2069]')
_NAME_CHARACTERS: Final = 150


class _Range(NamedTuple):
    first: int
    end: int


class ContentStream(StreamingResponse):
    """A part of a content. Its file is closed also if the client leaves before the first byte."""

    def __init__(self, content: OpenedContent, part: _Range, status: int, headers: dict[str, str]) -> None:
        super().__init__(_blocks(content, part), status, headers)
        self._file = content.file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the content, and close its file whatever happens."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def content_response(
    request: Request, content: OpenedContent, sha256: str, download: str | None = None
) -> Response:
    """A file, or the range of it that is requested. Call it in a thread: it reads what is short at once.

    Nothing in it can run where it is opened by itself: its policy is that of `same_origin.INERT_POLICY`.

    Args:
        download: the name under which a browser is to save it; None: it is shown, if it is an image, audio,
            video or text.

    Raises:
        HTTPException: 416 for a range beyond its end.
    """
    media_type = content.media_type
    content_type = f"{media_type}; charset=utf-8" if media_type == PLAIN_TEXT else media_type
    disposition = "inline"
    if download is not None or media_type == BINARY:
        disposition = f"attachment; filename*=UTF-8''{quote(download_name(download or sha256), safe='')}"
    headers = {
        "content-type": content_type,
        "content-disposition": disposition,
        "content-security-policy": INERT_POLICY,
    }
    return _response(request, content, sha256, headers)


def page_response(request: Request, content: OpenedContent, sha256: str) -> Response:
    """An HTML file as a page for a frame, as `content_response`; see `same_origin.FRAMED_POLICY`."""
    headers = {"content-type": "text/html; charset=utf-8", "content-security-policy": FRAMED_POLICY}
    return _response(request, content, sha256, headers)


def download_name(name: str) -> str:
    """The last part of a name, without characters that mean something to a file system or a terminal.

    Example:
        >>> download_name("../../etc/pass:wd")
        'pass_wd'
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    return _UNSAFE.sub("_", last).strip(". ")[-_NAME_CHARACTERS:] or "file"


def _response(request: Request, content: OpenedContent, sha256: str, headers: dict[str, str]) -> Response:
    tag = f'"{sha256}"'
    headers |= {
        "etag": tag,
        "accept-ranges": "bytes",
        # Rights may change, contents cannot: a browser asks again after a while.
        "cache-control": "private, max-age=300",
        "vary": "cookie",  # who signs in next in the same browser gets nothing that it has kept
        "x-content-type-options": "nosniff",
        "content-encoding": "identity",  # compressing images helps nobody, and breaks ranges
    }
    if tag in request.headers.get("if-none-match", ""):
        content.file.close()
        kept = {name: headers[name] for name in ("etag", "cache-control", "vary")}
        return Response(status_code=304, headers=kept)
    part = _requested_range(request.headers.get("range", ""), content.size)
    status = 200
    if part is None:
        part = _Range(0, content.size)
    elif part.first >= part.end:
        content.file.close()
        raise HTTPException(
            416, f"the file has {content.size} bytes", {"content-range": f"bytes */{content.size}"}
        )
    else:
        status = 206
        headers["content-range"] = f"bytes {part.first}-{part.end - 1}/{content.size}"
    headers["content-length"] = str(part.end - part.first)
    if request.method == "HEAD":
        content.file.close()
        return Response(status_code=status, headers=headers)
    if part.end - part.first <= BLOCK_BYTES:  # a stream takes several times as long as a short content
        with content.file:
            return Response(b"".join(_blocks(content, part)), status, headers)
    return ContentStream(content, part, status, headers)


def _requested_range(text: str, size: int) -> _Range | None:
    """The range of a request; None if it names none, or several, or in a way that is not understood."""
    match = _RANGE.fullmatch(text.replace(" ", ""))
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        return _Range(max(0, size - int(match[2])), size)
    return _Range(int(match[1]), min(size, int(match[2]) + 1) if match[2] else size)


def _blocks(content: OpenedContent, part: _Range) -> Iterator[bytes]:
    content.file.seek(part.first)
    remaining_bytes = part.end - part.first
    while remaining_bytes:
        block = content.file.read(min(remaining_bytes, _BLOCK_BYTES))
        if not block:
            return  # it was cut off; the length that was promised tells the client
        remaining_bytes -= len(block)
        yield block
