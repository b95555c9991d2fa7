"""Uploads the files that media records name, in pieces, before the records themselves, several at a time.

The server knows how much of each file has arrived, so an upload continues where it was interrupted, also by
another relay.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from runvitals.base.http_client import Body, FilePart, ServerResponse
from runvitals.base.json_codec import dumps, loads
from runvitals.base.parallel_work import failures_of
from runvitals.journal import paths
from runvitals.model import small_files
from runvitals.model.limits import PIECE_BYTES, SMALL_FILE_BYTES
from runvitals.model.media import files_of
from runvitals.relay.batch import Note
from runvitals.relay.destination import Retry, TooEarly, Unfinished

TURN_S = 2.0
"""How long a call of `deliver` uploads files before other writers and runs are served."""
_ASKED_AT_ONCE = 500
_OTHER_OFFSET = 409
_NOT_SUPPORTED = 405
_TOO_LARGE = 413
_REJECTED = frozenset({400, 413, 415, 422})
_NO_SPACE = frozenset({503, 507})
"""The disk of the server is full, or it cannot store the file for another reason that passes."""
_ATTEMPTS = 3
_FEWEST_TOGETHER = 2
_LARGEST_PIECE = 32 * PIECE_BYTES
"""Bytes of a file in one request, as far as the server and the network are fast enough."""
_MAX_REMEMBERED = 100_000

Request = Callable[[str, str, Body, Mapping[str, str]], ServerResponse]
"""Sends a request (method, path, body, headers); raises `Retry` or `Unauthorized` for errors that the
run did not cause."""


class MissingFile(NamedTuple):
    """A file that is not on the server and never will be, with the reason."""

    sha256: str
    why: str


class UploadProgress(NamedTuple):
    """How much of some files has arrived. `files`: those that are complete."""

    files: int
    bytes: int
    total_files: int
    total_bytes: int


class FileUploads:
    """Uploads files of one run.

    Args:
        folder: the run's folder.
        requests: each sends a request over a connection of its own: as many are sent at the same time.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        folder: str,
        run_id: str,
        requests: Sequence[Request],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._path = f"/api/v1/runs/{quote(run_id, safe='')}/files"
        self._at_once = len(requests)
        self._idle = list(requests)
        self._clock = clock
        self.progress: UploadProgress | None = None
        self._arrived: set[str] = set()
        self._missing: dict[str, str] = {}
        self._begun: dict[str, int] = {}
        self._progressed = False
        self._takes_small = True
        self._piece_bytes, self._largest_piece = PIECE_BYTES, _LARGEST_PIECE

    def upload(self, notes: Iterable[Note], entity: str | None) -> dict[int, MissingFile]:
        """Upload the files of media records. Returns files that will never arrive, by the record's number.

        Raises:
            Unfinished: the time for one turn is over; call it again.
            TooEarly: the server cannot store files at present, or is of an earlier version without files.
            Retry, OSError: the server cannot be reached.
        """
        digests_by_seq = {
            note.seq: [file["sha256"] for file in files_of(note.value["items"])] for note in notes
        }
        sizes = {file["sha256"]: file["bytes"] for note in notes for file in files_of(note.value["items"])}
        needed = [sha256 for sha256 in sizes if sha256 not in self._arrived and sha256 not in self._missing]
        until_s = self._clock() + TURN_S
        self._progressed = False  # at least one piece a turn, however slow the server is
        try:
            for first in range(0, len(needed), _ASKED_AT_ONCE):
                offsets = self._offsets(needed[first : first + _ASKED_AT_ONCE], entity)
                small = self._small([sha256 for sha256, at in offsets.items() if not at], sizes)
                self._do_all(lambda batch: self._send_small(batch, sizes, entity, until_s), small)
                rest = [item for item in offsets.items() if item[0] not in self._arrived]
                self._do_all(lambda item: self._send(item[0], sizes[item[0]], item[1], entity, until_s), rest)
        finally:
            self.progress = self._progress(sizes)
        if len(self._arrived) > _MAX_REMEMBERED:
            self._arrived.clear()
        return {
            seq: MissingFile(sha256, self._missing[sha256])
            for seq, digests in digests_by_seq.items()
            for sha256 in digests
            if sha256 in self._missing
        }

    def _progress(self, sizes: Mapping[str, int]) -> UploadProgress:
        arrived_sizes = [size for sha256, size in sizes.items() if sha256 in self._arrived]
        begun = sum(self._begun.values())
        return UploadProgress(len(arrived_sizes), sum(arrived_sizes) + begun, len(sizes), sum(sizes.values()))

    def _do_all(self, work: Callable[[Any], None], items: Sequence[Any]) -> None:
        """Do something with each item, several at a time; raise what stopped one, and begin no more then."""
        failures = failures_of(work, items, self._at_once)
        for error in sorted(failures, key=lambda error: isinstance(error, Unfinished)):
            raise error

    def _request(self, method: str, path: str, body: Body, headers: Mapping[str, str]) -> ServerResponse:
        request = self._idle.pop()  # there is one for each thread
        try:
            return request(method, path, body, headers)
        finally:
            self._idle.append(request)

    def _offsets(self, digests: Sequence[str], entity: str | None) -> dict[str, int]:
        """Return the offset of the next piece of each file that the server does not have."""
        body = dumps({"files": [{"sha256": sha256} for sha256 in digests]})
        response = self._request(
            "POST", self._path + _query(entity), body, {"Content-Type": "application/json"}
        )
        if response.status == _NOT_SUPPORTED:
            raise TooEarly(
                "the server does not accept images, tables and other files: it needs a later version of "
                "runvitals; they are delivered when it has one"
            )
        files = _json(response).get("files")
        if not isinstance(files, list) or len(files) != len(digests):
            raise Retry(f"{self._path}: unexpected response: {response.text()}", response.retry_after_s)
        offsets: dict[str, int] = {}
        for sha256, state in zip(digests, files, strict=True):
            if state.get("complete"):
                self._arrived.add(sha256)
            else:
                offsets[sha256] = int(state.get("offset") or 0)
        return offsets

    def _small(self, digests: Sequence[str], sizes: Mapping[str, int]) -> list[list[str]]:
        """Return small files among some, in lists of as many as fit into one request."""
        parts: list[list[str]] = []
        room = 0
        for sha256 in digests if self._takes_small else ():
            size = small_files.HEAD_BYTES + sizes[sha256]
            if sizes[sha256] > SMALL_FILE_BYTES:
                continue
            if size > room:
                parts.append([])
                room = PIECE_BYTES
            parts[-1].append(sha256)
            room -= size
        return [part for part in parts if len(part) >= _FEWEST_TOGETHER]

    def _send_small(
        self, digests: Sequence[str], sizes: Mapping[str, int], entity: str | None, until_s: float
    ) -> None:
        """Send small files in one request. What it leaves is sent one by one, and its errors found."""
        if not self._takes_small:
            return
        if self._progressed and self._clock() > until_s:
            raise Unfinished
        self._progressed = True
        contents = self._small_contents(digests, sizes)
        path = self._path.removesuffix("/files") + f"/small-files{_query(entity)}"
        headers = {"Content-Type": "application/octet-stream"}
        response = self._request("POST", path, small_files.pack(contents.items()), headers)
        if response.status in _NO_SPACE:
            why = f"{response.status} {_json(response).get('error') or response.text()}"
            raise TooEarly(f"the server cannot store files now: {why}", response.retry_after_s)
        if response.status in (404, _NOT_SUPPORTED):  # an earlier version
            self._takes_small = False
        if response.status == 200:
            self._arrived.update(contents)

    def _small_contents(self, digests: Sequence[str], sizes: Mapping[str, int]) -> dict[str, bytes]:
        """Return the contents of some small files, as far as they can be read."""
        contents: dict[str, bytes] = {}
        for sha256 in digests:
            try:
                with open(paths.open_file(paths.content_path(self._folder, sha256)), "rb") as file:
                    content = file.read(SMALL_FILE_BYTES + 1)
            except OSError:
                continue
            if len(content) == sizes[sha256]:
                contents[sha256] = content
        return contents

    def _send(self, sha256: str, size: int, offset: int, entity: str | None, until_s: float) -> None:
        """Send the rest of a file."""
        try:
            fd = paths.open_file(paths.content_path(self._folder, sha256))
        except OSError as error:
            self._missing[sha256] = f"its file cannot be read: {error.strerror}"
            return
        attempts = 0
        try:
            if os.fstat(fd).st_size != size:
                self._missing[sha256] = f"its file has {os.fstat(fd).st_size} bytes instead of {size}"
                return
            while sha256 not in self._arrived and sha256 not in self._missing:
                if self._progressed and self._clock() > until_s:
                    raise Unfinished
                address = f"{self._path}/{sha256}{_query(entity, offset=offset, size=size)}"
                response = self._send_piece(address, fd, offset, size)
                if response.status == _OTHER_OFFSET and attempts < _ATTEMPTS:
                    attempts += 1
                    offset = int(_json(response).get("offset") or 0)
                elif response.status in _NO_SPACE:
                    why = f"{response.status} {_json(response).get('error') or response.text()}"
                    raise TooEarly(f"the server cannot store files now: {why}", response.retry_after_s)
                elif response.status in _REJECTED or response.status == _OTHER_OFFSET:
                    self._missing[sha256] = f"{response.status} {_json(response).get('error') or ''}".strip()
                else:
                    state = _json(response)
                    if not state.get("complete") and int(state.get("offset") or 0) <= offset:
                        raise Retry(
                            f"{self._path}: unexpected response: {response.text()}", response.retry_after_s
                        )
                    offset = self._begun[sha256] = int(state.get("offset") or 0)
                    if state.get("complete"):
                        self._arrived.add(sha256)
        finally:
            if sha256 in self._arrived or sha256 in self._missing:
                self._begun.pop(sha256, None)
            os.close(fd)

    def _send_piece(self, address: str, fd: int, offset: int, size: int) -> ServerResponse:
        """Send a piece of a file to an address; a shorter one if it is too long."""
        self._progressed = True
        while True:
            length, start_s = min(self._piece_bytes, size - offset), self._clock()
            headers = {"Content-Type": "application/octet-stream"}
            response = self._request("PUT", address, FilePart(fd, offset, length), headers)
            if response.status != _TOO_LARGE or length <= PIECE_BYTES:
                self._choose_piece(length, self._clock() - start_s)
                return response
            self._piece_bytes = self._largest_piece = PIECE_BYTES  # an earlier server, or a proxy

    def _choose_piece(self, sent_bytes: int, took_s: float) -> None:
        """Choose the size of the next pieces: a request shall take some of a turn, and not much of it."""
        if took_s > TURN_S / 4:
            self._piece_bytes = max(PIECE_BYTES, sent_bytes // 2)
        elif took_s < TURN_S / 8 and sent_bytes == self._piece_bytes:
            self._piece_bytes = min(2 * sent_bytes, self._largest_piece)


def _query(entity: str | None, **numbers: int) -> str:
    parameters: dict[str, Any] = {**numbers, **({"entity": entity} if entity else {})}
    return f"?{urlencode(parameters)}" if parameters else ""


def _json(response: ServerResponse) -> dict[str, Any]:
    try:
        value = loads(response.body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
