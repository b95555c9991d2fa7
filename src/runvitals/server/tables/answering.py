"""Calls of the API answered with a table."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence

from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool, run_in_threadpool

from runvitals.buckets import grid
from runvitals.query.columns import Series
from runvitals.server import series
from runvitals.server.tables import samples
from runvitals.server.tables.blocks import Table, bucket_table, call_table, sample_blocks, sample_fields
from runvitals.server.tables.formats import MEDIA_TYPES, Format
from runvitals.server.tables.writing import TableWriter, table_writer
from runvitals.server.views import Chosen, OpenedRun, RunView

_SUFFIXES = {"csv": "csv", "arrow": "arrows", "parquet": "parquet"}


async def metrics_table(
    run: OpenedRun, chosen: Chosen, t0: int | None, t1: int | None, max_points: int | None, format: Format
) -> StreamingResponse:
    """What `series.metrics` answers, as a table; without `max_points` of any length.

    Raises:
        ValueError: t1 before t0.
    """

    def charted(view: RunView) -> tuple[str, Table | samples.Stretch | list[Series]]:
        if max_points is None:
            return view.run_id, samples.stretch(view, chosen, t0, t1)
        start, end = series.stretch(view, chosen, t0, t1)
        found = view.charted(chosen, start, end, grid(start, end, max_points), max_points)
        return view.run_id, found.samples if found.buckets is None else bucket_table(found.buckets)

    run_id, found = await run.use(charted)
    if isinstance(found, samples.Stretch):
        writer = table_writer(format, sample_fields(found.keys))
        return _streamed(_windows(run, chosen, found, writer), run_id, format)
    if isinstance(found, list):
        keys = sorted({one.key for one in found})
        found = Table(sample_fields(keys), sample_blocks(keys, found))
    return _written(found, run_id, format)


async def history_table(
    run: OpenedRun, keys: list[str], max_points: int | None, rank: int | None, format: Format
) -> StreamingResponse:
    """What `series.logged` answers, as a table.

    Raises:
        TooMuch: more values than one answer holds.
    """

    def read(view: RunView) -> tuple[str, list[series.Logged]]:
        return view.run_id, list(series.logged_columns(view, keys, max_points, rank))

    run_id, logged = await run.use(read)
    return _written(await run_in_threadpool(call_table, logged), f"{run_id}-history", format)


def _written(table: Table, name: str, format: Format) -> StreamingResponse:
    writer = table_writer(format, table.fields)

    def pieces() -> Iterator[bytes]:
        yield writer.begin()
        for block in table.blocks:
            yield writer.add(block)
        yield writer.end()

    return _streamed(iterate_in_threadpool(pieces()), name, format)


async def _windows(
    run: OpenedRun, chosen: Chosen, of: samples.Stretch, writer: TableWriter
) -> AsyncIterator[bytes]:
    yield writer.begin()
    async for window in samples.windows(run, chosen, of):
        async for piece in iterate_in_threadpool(_rows(writer, of.keys, window)):
            yield piece
    yield await run_in_threadpool(writer.end)


def _rows(writer: TableWriter, keys: Sequence[str], window: Sequence[Series]) -> Iterator[bytes]:
    for block in sample_blocks(keys, window):
        yield writer.add(block)


def _streamed(pieces: AsyncIterator[bytes], name: str, format: Format) -> StreamingResponse:
    headers = {
        "cache-control": "no-store",
        "content-disposition": f'attachment; filename="{name}.{_SUFFIXES[format]}"',
        "vary": "accept",
    }
    if format == "parquet":
        headers["content-encoding"] = "identity"  # its columns are packed already: not once more
    return StreamingResponse(pieces, media_type=MEDIA_TYPES[format], headers=headers)
