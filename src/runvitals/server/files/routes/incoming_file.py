"""A body that is written to the disk as it arrives: files are too large for memory."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import BinaryIO, Final, NamedTuple

import anyio
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from runvitals.base.numbers import parse_integer
from runvitals.journal.paths import OPEN_FLAGS
from runvitals.model import limits
from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.http.request_errors import HttpRejection

PIECE_BYTES: Final = limits.PIECE_BYTES
_WAIT_S: Final = 60.0
"""How long a client may send nothing."""
_MAX_LENGTH: Final = 1 << 62


class Incoming(NamedTuple):
    """A file that has arrived and is on the disk. `md5`: as base64; `sha256`: in hexadecimal."""

    path: str
    size: int
    md5: str
    sha256: str


class _Writer:
    """Writes a file and computes its digests; in threads."""

    def __init__(self, path: str) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OPEN_FLAGS, 0o600)
        self._file: BinaryIO = os.fdopen(descriptor, "wb", buffering=0)
        self._path = path
        self._size = 0
        self._md5, self._sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()

    def write(self, chunks: Sequence[bytes]) -> None:
        for chunk in chunks:
            unwritten = memoryview(chunk)
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]
            self._md5.update(chunk)
            self._sha256.update(chunk)
            self._size += len(chunk)

    def finish(self) -> Incoming:
        os.fsync(self._file.fileno())
        self._file.close()
        md5 = base64.b64encode(self._md5.digest()).decode("ascii")
        return Incoming(self._path, self._size, md5, self._sha256.hexdigest())

    def close(self) -> None:
        self._file.close()


@asynccontextmanager
async def receive_file(
    request: Request,
    files: ReceivedFiles,
    most_bytes: int | None = None,
    run_id: int | None = None,
    *,
    is_artifact: bool = False,
) -> AsyncIterator[Incoming]:
    """Yield the body of a request as a file, which is removed afterwards unless it was moved away.

    A body without a length counts as large as it has become so far.

    Args:
        most_bytes: a longer body is rejected; None: the limit of files of runs or artifacts.
        run_id: the run whose file it is; None: it is one of an artifact.
        is_artifact: see `ReceivedFiles.begin`.

    Raises:
        HttpRejection: 400, 408, 413, or 503 if it could not be stored.
    """
    announced = request.headers.get("content-length")
    size = None if announced is None else parse_integer(announced.encode("latin-1"), _MAX_LENGTH)
    if announced is not None and size is None:
        raise HttpRejection(400, f"invalid Content-Length {announced[:60]!r}: expected a number of bytes")
    _check_size(size or 0, most_bytes)
    path: str | None = None
    begin = partial(files.begin, run_id=run_id, is_artifact=is_artifact)
    try:
        with files.space.writing():
            if size is not None and size <= PIECE_BYTES:
                chunks: list[bytes] = await anext(pieces_of(request), [])
                incoming = await run_in_threadpool(_write_whole, files, begin, size, chunks)
                path = incoming.path
            else:
                path = await run_in_threadpool(begin, size or 0)
                reserve = None if size is not None else partial(_reserve, files, path, most_bytes)
                incoming = await _receive(request, path, reserve)
            if size is not None and incoming.size != size:
                raise HttpRejection(400, f"the body has {incoming.size:,} bytes, not {size:,} as announced")
            yield incoming
    finally:
        if path is not None:
            files.end(path)


def _check_size(size: int, most_bytes: int | None) -> None:
    if most_bytes is not None and size > most_bytes:
        raise HttpRejection(413, f"a body of {size:,} bytes; at most {most_bytes:,} are allowed")


def _reserve(files: ReceivedFiles, path: str, most_bytes: int | None, size: int) -> None:
    """Reserve space for more of a file whose size was not announced."""
    _check_size(size, most_bytes)
    files.reserve(path, size)


def _write_whole(
    files: ReceivedFiles, begin: Callable[[int], str], size: int, chunks: Sequence[bytes]
) -> Incoming:
    """Write a short file in one go: a thread for each step would take more time than all steps."""
    path = begin(size)
    try:
        writer = _Writer(path)
        try:
            writer.write(chunks)
            return writer.finish()
        finally:
            writer.close()
    except BaseException:
        files.end(path)
        raise


async def _receive(request: Request, path: str, reserve: Callable[[int], None] | None) -> Incoming:
    """Write the file's body; returns what was written.

    Args:
        reserve: called in a thread with the size that the file is about to have.
    """
    writer = await run_in_threadpool(_Writer, path)
    size = 0
    try:
        async for chunks in pieces_of(request):
            if reserve is not None:
                size += sum(map(len, chunks))
                await run_in_threadpool(reserve, size)
            await run_in_threadpool(writer.write, chunks)
        return await run_in_threadpool(writer.finish)
    finally:
        writer.close()


async def pieces_of(request: Request) -> AsyncIterator[list[bytes]]:
    """Yield the body of a request in pieces of about `PIECE_BYTES`, each in the chunks in which it arrived.

    Raises:
        HttpRejection: 408: nothing arrived for a minute; 400: the connection ended.
    """
    chunks = request.stream()
    piece: list[bytes] = []
    size = 0
    while True:
        try:
            with anyio.fail_after(_WAIT_S):
                chunk = await anext(chunks, None)
        except TimeoutError:
            raise HttpRejection(408, f"nothing of the body arrived for {_WAIT_S:g} s") from None
        except ClientDisconnect:
            raise HttpRejection(400, "the connection ended before the body did") from None
        if chunk is None:
            break
        piece.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if size:
        yield piece
