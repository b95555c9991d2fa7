"""Responses with a table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Sequence
from contextlib import suppress

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from runvitals.readers.journals.series import Series
from runvitals.server.charts import series
from runvitals.server.charts.overlay.axis import Extract
from runvitals.server.charts.routes.tables import samples
from runvitals.server.charts.routes.tables.blocks import (
    Table,
    bucket_table,
    logged_table,
    sample_blocks,
    sample_fields,
)
from runvitals.server.charts.routes.tables.formats import MEDIA_TYPES, Format
from runvitals.server.charts.routes.tables.writers import TableWriter, table_writer
from runvitals.server.http import response_memory
from runvitals.server.http.errors import answering
from runvitals.server.http.responses import problem_headers
from runvitals.server.library.run_library import OpenedRun, RunView, SeriesSelection

_SUFFIXES = {"csv": "csv", "arrow": "arrows", "parquet": "parquet"}


_BLOCK_BYTES = 16 * (1 << 20)
"""Memory of any table while it is sent: a block (9 MiB, see `blocks.MAX_CELLS`) and its text."""
_VALUE_BYTES = 16
"""A value and its time."""
_COLUMNS_OF_A_BUCKET = 4


class TableResponse(StreamingResponse):
    """A table that is encoded while it is sent.

    Attributes:
        held_bytes: about how much memory it takes until it has been sent.
    """

    held_bytes = 0


class IncompleteTable(Exception):
    """Data could not be read after the response began.

    The connection is closed, so that a client does not take the table for complete.
    """


async def send_table(request: Request, preparing: Awaitable[TableResponse]) -> TableResponse:
    """Return a table whose memory is counted until it has been sent.

    Raises:
        HTTPException: 422 if preparing it raises ValueError: too much was requested, or a parameter is wrong.
        Busy: the responses being sent hold too much memory.
    """
    with answering(422):
        table = await preparing
    response_memory.hold(request, table.held_bytes)
    return table


async def metrics_table(
    run: OpenedRun,
    selection: SeriesSelection,
    t0: int | None,
    t1: int | None,
    max_points: int | None,
    format: Format,
    now_ms: int,
    log_from: int | None = None,
) -> TableResponse:
    """Return the series of `series.metrics` as a table. Without `max_points` it may have any length.

    A header lists data that is known to be unreadable when the response begins. If more is found later, the
    rest of the table is sent and the connection is then closed before the end of the response.

    Raises:
        ValueError: t1 before t0.
    """
    problems: dict[str, None] = {}

    def charted(view: RunView) -> tuple[str, Table | samples.SampleRange | list[Series], int]:
        noted = view.note_problems()
        if max_points is None:
            of = samples.sample_range(view, selection, t0, t1)
            if of.values > samples.WINDOW_VALUES:
                problems.update(dict.fromkeys(view.run(now_ms).problems))
            problems.update(noted)
            return view.run_id, of, min(of.values, samples.WINDOW_VALUES)
        start, end = series.time_range(view, selection, t0, t1, log_from)
        content, _ = series.read_chart(view, selection, start, end, max_points, log_from)
        problems.update(noted)
        if content.buckets is None:
            return view.run_id, content.samples, sum(len(item.t) for item in content.samples)
        count = sum(_COLUMNS_OF_A_BUCKET * len(item.buckets.t) for item in content.buckets)
        return view.run_id, bucket_table(content.buckets), count

    run_id, content, values = await run.use(charted)
    if isinstance(content, samples.SampleRange):
        writer = table_writer(format, sample_fields(content.keys))
        windows = samples.windows(run, selection, content)
        # Read before the response begins, so that the header of a short table can list unreadable data.
        first = samples.SampleWindow([], [])
        with suppress(StopAsyncIteration):
            first = await anext(windows)
        problems.update(dict.fromkeys(first.problems))
        pieces = _windows(first, windows, content.keys, writer, problems)
        return _stream(pieces, run_id, format, problems, values)
    if isinstance(content, list):
        keys = sorted({item.key for item in content})
        content = Table(sample_fields(keys), sample_blocks(keys, content))
    return _write_table(content, run_id, format, problems, values)


async def history_table(
    run: OpenedRun, selection: series.LoggedSelection, part: Extract | None, format: Format
) -> TableResponse:
    """Return the values of `series.logged_values` as a table.

    Raises:
        TooMuch: more values than one response may hold.
    """
    problems: dict[str, None] = {}

    def read(view: RunView) -> tuple[str, list[series.LoggedSeries]]:
        noted = view.note_problems()
        logged = list(series.logged_series(view, selection, part))
        problems.update(noted)
        return view.run_id, logged

    run_id, logged = await run.use(read)
    values = sum(len(column) for item in logged for column in item.columns.values())
    table = await run_in_threadpool(logged_table, logged)
    return _write_table(table, f"{run_id}-history", format, problems, values)


def _write_table(
    table: Table, name: str, format: Format, problems: Collection[str], values: int
) -> TableResponse:
    writer = table_writer(format, table.fields)

    def pieces() -> Iterator[bytes]:
        yield writer.begin()
        for block in table.blocks:
            yield writer.add(block)
        yield writer.end()

    return _stream(iterate_in_threadpool(pieces()), name, format, problems, values)


async def _windows(
    first: samples.SampleWindow,
    others: AsyncIterator[samples.SampleWindow],
    keys: Sequence[str],
    writer: TableWriter,
    reported: Collection[str],
) -> AsyncIterator[bytes]:
    unreported: dict[str, None] = {}
    yield writer.begin()
    async for piece in iterate_in_threadpool(_rows(writer, keys, first.series)):
        yield piece
    async for window in others:
        unreported.update(dict.fromkeys(problem for problem in window.problems if problem not in reported))
        async for piece in iterate_in_threadpool(_rows(writer, keys, window.series)):
            yield piece
    yield await run_in_threadpool(writer.end)
    if unreported:
        raise IncompleteTable(f"a table is incomplete: {'; '.join(unreported)}")


def _rows(writer: TableWriter, keys: Sequence[str], window: Sequence[Series]) -> Iterator[bytes]:
    for block in sample_blocks(keys, window):
        yield writer.add(block)


def _stream(
    pieces: AsyncIterator[bytes], name: str, format: Format, problems: Collection[str], values: int
) -> TableResponse:
    headers = {
        **problem_headers(problems),
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{name}.{_SUFFIXES[format]}"',
        "vary": "accept",
    }
    if format == "parquet":
        headers["content-encoding"] = "identity"  # its columns are compressed already
    response = TableResponse(pieces, media_type=MEDIA_TYPES[format], headers=headers)
    response.held_bytes = _BLOCK_BYTES + _VALUE_BYTES * values
    return response
