"""Receives remote write requests."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import anyio.to_thread
from cramjam import DecompressionError, snappy
from starlette.requests import Request

from runvitals.base.protobuf import Malformed, read_varint
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.access.requester import SCOPE_KEY, Requester
from runvitals.server.doors.project_rules import ProjectRules, home_of
from runvitals.server.doors.recording import DoorRecorder
from runvitals.server.doors.remote_write.message import SentSamples, read_version_1, read_version_2
from runvitals.server.doors.remote_write.preparation import MAX_UNSENT, Outputs, Prepared, prepare
from runvitals.server.doors.remote_write.rivals import SECTION, ToldApart
from runvitals.server.doors.remote_write.series_numbers import SeriesNumbers
from runvitals.server.doors.remote_write.series_table import MAX_SERIES, SeriesTable
from runvitals.server.doors.routing import NamedPlace, RoutingRules
from runvitals.server.http.request_body import BodyReader
from runvitals.server.http.request_errors import HttpRejection, malformed, too_large, unavailable
from runvitals.server.ingest.decompression import decompress
from runvitals.server.metadata_store import MetadataStore

MAX_TABLES: Final = 64
MAX_KEPT: Final = 400_000
"""Series of all senders that are kept: those of the senders that were silent longest are looked up anew."""
_PROJECT, _ENTITY = "x-runvitals-project", "x-runvitals-entity"
_VERSION_2: Final = "io.prometheus.write.v2.Request"
_VERSION_1: Final = "prometheus.WriteRequest"

_UNKNOWN_SCHEMA: Final = 409
_MAX_SNAPPY_RATIO: Final = 64
"""Three bytes of a snappy block stand for at most 64."""

Reader = Callable[[bytes, SeriesNumbers], SentSamples]


class WriteStatistics(NamedTuple):
    """The outcome of a request.

    The samples and histograms that were stored, and why others were not ("": all were).
    """

    samples: int
    histograms: int
    problems: str


class _Sender(NamedTuple):
    """Who sends (None: there are no accounts), for which project, its rules, and the owner of its runs."""

    account: tuple[str, int] | None
    address: NamedPlace
    rules: RoutingRules
    home: int | None


class _Tables:
    """The series of a sender, and derived metrics that could not be stored."""

    def __init__(self, sender: _Sender, told_apart: ToldApart) -> None:
        self.series = SeriesTable(sender.rules, sender.address, sender.home, told_apart)
        self.unsent: list[Outputs] = []


class RemoteWrite:
    """Receives remote write.

    Args:
        doors: stores the samples.
        rules: of projects.
        metadata_store: says which series were told apart before.
        clock: the time now, ms UTC.
    """

    def __init__(
        self,
        doors: DoorRecorder,
        rules: ProjectRules,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
    ) -> None:
        self._doors = doors
        self._rules = rules
        self._metadata_store = metadata_store
        self._clock = clock
        self._told_apart: ToldApart | None = None
        self._bodies = BodyReader(doors.limits.body_bytes, doors.limits.body_s)
        self._tables: OrderedDict[_Sender, _Tables] = OrderedDict()
        self._turn = asyncio.Lock()

    async def receive(self, request: Request) -> WriteStatistics:
        """Store the samples of a request. Returns when they are durable.

        Raises:
            HttpRejection: 400, 401, 403, 408, 413, 415, 422, 429, 503.
            ClientDisconnected: the connection ended.
        """
        read = _reader(request.headers.get("content-type", ""))
        address = NamedPlace(request.headers.get(_ENTITY), request.headers.get(_PROJECT))
        rules = await self._rules.of(request.scope, address)
        sender = _Sender(_account(request), address, rules, home_of(request.scope))
        if self._told_apart is None:
            async with self._turn:
                if self._told_apart is None:
                    self._told_apart = await anyio.to_thread.run_sync(self._load_told_apart)
        with self._doors.in_flight(_declared_length(request)) as in_flight:
            self._bodies.check_length(_declared_length(request))
            body = await self._bodies.read(request.receive, in_flight.reserve)
            limits = self._doors.limits
            work = partial(self._prepare, body, request.headers.get("content-encoding", ""), read, sender)
            # One at a time: a scrape may come in several requests, and derived metrics need all of them.
            async with self._turn:
                if len(body) <= limits.thread_bytes:
                    prepared_write = work()
                else:
                    prepared_write = await anyio.to_thread.run_sync(work)
            if not prepared_write.envelopes:
                return WriteStatistics(
                    prepared_write.written, prepared_write.histograms, prepared_write.problems
                )
            await self._store(request, sender, prepared_write, len(body))
            return WriteStatistics(prepared_write.written, prepared_write.histograms, prepared_write.problems)

    async def _store(
        self, request: Request, sender: _Sender, prepared_write: Prepared, body_bytes: int
    ) -> None:
        try:
            acks = await self._doors.record(request.scope, prepared_write.envelopes, body_bytes)
        except BaseException as error:
            # The sender repeats its samples, but they are no longer inputs of derived metrics.
            tables = self._tables.get(sender)
            if tables is not None:
                tables.unsent = [*tables.unsent, *prepared_write.outputs][-MAX_UNSENT:]
            if isinstance(error, HttpRejection) and error.status == _UNKNOWN_SCHEMA:
                for target in prepared_write.targets:
                    target.forget_schemas()
                raise unavailable("lists of keys are unknown: they are sent again") from error
            raise
        for columns, ack in zip(prepared_write.columns, acks, strict=False):
            columns.schema = ack.schema

    def _prepare(self, body: bytes, encoding: str, read: Reader, sender: _Sender) -> Prepared:
        limits = self._doors.limits
        message = _decompress(body, encoding, min(limits.message_bytes, limits.unpacked_bytes))
        tables = self._of(sender)
        try:
            samples = read(message, tables.series.numbers)
        except Malformed as error:
            raise malformed(f"invalid remote write message: {error}") from None
        now_ms = self._clock()
        newest_ms = now_ms + limits.ahead_ms
        unsent, tables.unsent = tables.unsent, []
        return prepare(samples, tables.series, limits.oldest_ms, newest_ms, unsent, now_ms)

    def _load_told_apart(self) -> ToldApart:
        told_apart = ToldApart()
        for row in self._metadata_store.sections.of_all_runs(SECTION):
            told_apart.load(row.run, (row.entity, row.entity_id, None), row.values)
        return told_apart

    def _of(self, sender: _Sender) -> _Tables:
        tables = self._tables.pop(sender, None)
        if tables is None or len(tables.series) >= MAX_SERIES // 2:  # the other half is for this request
            tables = _Tables(sender, self._told_apart or ToldApart())
        self._tables[sender] = tables
        series_count = sum(len(each.series) for each in self._tables.values())
        while len(self._tables) > MAX_TABLES or (series_count > MAX_KEPT and len(self._tables) > 1):
            _, oldest = self._tables.popitem(last=False)
            series_count -= len(oldest.series)
        return tables


def _account(request: Request) -> tuple[str, int] | None:
    requester: Requester | None = request.scope.get(SCOPE_KEY)
    principal = None if requester is None else requester.principal
    return (type(principal).__name__, principal.id) if isinstance(principal, (User, ServiceAccount)) else None


def _reader(content_type: str) -> Reader:
    """Return the reader for the message that the request declares.

    Raises:
        HttpRejection: 415 for another message.
    """
    media_type, *parameters = (part.strip() for part in content_type.split(";"))
    pairs = [part.split("=", 1) for part in parameters if "=" in part]
    declared = (value.strip(' "') for name, value in pairs if name.strip().lower() == "proto")
    message = next(declared, _VERSION_1)
    if media_type.lower() in ("application/x-protobuf", "") and message in (_VERSION_1, _VERSION_2):
        return read_version_2 if message == _VERSION_2 else read_version_1
    expected = f"application/x-protobuf with proto={_VERSION_1} or {_VERSION_2}"
    raise HttpRejection(415, f"unknown Content-Type {content_type[:200]!r}; expected {expected}")


def _declared_length(request: Request) -> int:
    text = request.headers.get("content-length", "0")
    return int(text[:20]) if text.isascii() and text.isdigit() else 0


def _decompress(body: bytes, encoding: str, max_bytes: int) -> bytes:
    """Return a body without its encoding: snappy's block format, or the zstd of VictoriaMetrics' agent.

    Args:
        encoding: value of the header `Content-Encoding`. Without one it is snappy, as in remote write 1.0.
        max_bytes: maximum size of the result, which is checked before anything is decompressed.

    Raises:
        HttpRejection: 400 for damaged data, 413 for more than `max_bytes`, 415 for an unknown encoding.
    """
    name = encoding.strip().lower()
    if name not in ("", "snappy"):
        return decompress(body, name, max_bytes)
    try:
        size, _ = read_varint(body, 0)
    except Malformed:
        raise malformed("invalid snappy block: it does not begin with its size") from None
    if size > max_bytes:
        raise too_large(f"the body has {size} bytes decompressed; at most {max_bytes} are allowed")
    if size > len(body) * _MAX_SNAPPY_RATIO:
        raise malformed(f"invalid snappy block: {len(body)} bytes cannot contain {size}")
    try:
        return bytes(snappy.decompress_raw(body))
    except DecompressionError as error:
        raise malformed(f"invalid snappy block: {error}") from None
