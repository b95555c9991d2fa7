"""History, system metrics and output of a run, as `wandb.Api()` reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from runvitals.base.buckets import grid
from runvitals.base.numbers import parse_integer
from runvitals.model import json_values
from runvitals.model.logged_media import ValueSelection
from runvitals.readers.journals.rates import rate_of
from runvitals.readers.journals.series import Series
from runvitals.server.charts.series import LoggedSelection
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.history_rows import (
    MAX_OTHERS,
    MAX_ROWS,
    MAX_VALUES,
    STEP,
    HistoryRows,
    json_safe,
    logged_names,
    system_rows,
)
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import RunNode, iso_time
from runvitals.server.doors.wandb.summaries import SUMMARY_SECTIONS, last_numbers, summary_of
from runvitals.server.library.run_library import ConsolePiece, RunView, SeriesSelection, TooMuch

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

HISTORY_READS: Final = Resolvers("history_reads")
_SAMPLES: Final = 500
_NOTHING: Final = "{}"
_MAX_SPECS: Final = 20
_MAX_KEYS: Final = 1000
_MAX_CONSOLE_BYTES: Final = 16 << 20
_MAX_LINES: Final = 10_000
_MAX_NUMBER: Final = 2**53
T = TypeVar("T")


@HISTORY_READS.field("Run", "history")
async def history(
    node: RunNode,
    info: Info,
    min_step: int | None = None,
    max_step: int | None = None,
    samples: int | None = None,
) -> list[str]:
    """Return the rows that the run logged."""
    for bound in (min_step, max_step):
        if bound is not None and (type(bound) is not int or abs(bound) >= 2**63):
            raise InvalidArgument("invalid minStep or maxStep: expected integers of 64 bits")

    def read(view: RunView) -> list[str]:
        rows = _history(view, node, (), min_step, max_step)
        row_indices = rows.choose(_SAMPLES if samples is None else samples, (), min_step, max_step)
        return [json.dumps(row, ensure_ascii=False) for row in rows.rows(row_indices)]

    return await _read(info, node, read)


@HISTORY_READS.field("Run", "sampledHistory")
async def sampled_history(node: RunNode, info: Info, specs: Sequence[str]) -> list[Any]:
    """Return, for each spec, the rows that have all of its keys."""
    if len(specs) > _MAX_SPECS:
        raise InvalidArgument(f"{len(specs)} specs; expected at most {_MAX_SPECS}")
    if all(spec == _NOTHING for spec in specs):  # what asks for the state of a sweep
        return [[] for _ in specs]
    parsed_specs = [_spec(text) for text in specs]

    def read(view: RunView) -> list[Any]:
        sampled = []
        for spec in parsed_specs:
            rows = _history(view, node, spec.keys, spec.min_step, spec.max_step)
            row_indices = rows.choose(spec.samples, spec.keys, spec.min_step, spec.end_step)
            sampled.append(json_safe(rows.rows(row_indices, spec.keys)))
        return sampled

    return await _read(info, node, read)


@HISTORY_READS.field("Run", "events")
async def events(node: RunNode, info: Info, samples: int | None = None) -> list[str]:
    """Return the rows of system metrics."""
    count = max(0, min(MAX_ROWS, _SAMPLES if samples is None else samples))

    def read(view: RunView) -> list[str]:
        derived = {rate.key for key in view.sampled_keys() if (rate := rate_of(key)) is not None}
        measured = [series for series in _system_series(view, count) if series.key not in derived]
        rows = system_rows(measured, count, node.row.started_ms)
        return [json.dumps(json_safe(row)) for row in rows]

    return await _read(info, node, read)


def _system_series(view: RunView, samples: int) -> list[Series]:
    """Return all samples of a run; of a long one, the last in each of `samples` intervals."""
    selection = SeriesSelection()
    extent = view.extent(selection)
    if extent is None:
        return []
    try:
        return view.samples(selection, *extent, MAX_VALUES)
    except TooMuch:
        on = grid(*extent, max(2, samples))
        return [
            Series(series.key, series.host, series.role, series.buckets.t, series.buckets.last)
            for series in view.read_buckets(selection, on)
        ]


@HISTORY_READS.field("Run", "historyKeys")
async def history_keys(node: RunNode, info: Info) -> dict[str, Any]:
    """Return the names that the run logged, with the last value of numbers, and its last step."""

    def read(view: RunView) -> dict[str, Any]:
        row_id = node.row.id
        sections = info.context.metadata_store.sections.read([row_id], SUMMARY_SECTIONS)[row_id]
        newest = last_numbers(summary_of(sections))
        last = -1 if node.last_step is None else int(node.last_step)
        kinds = {
            **dict.fromkeys(view.other_names(), "string"),
            **dict.fromkeys(view.logged_names(), "number"),
        }
        keys = {
            name: {
                "typeCounts": [{"type": kinds[name], "count": 1}],
                "monotonic": False,
                **({"previousValue": newest[name]} if name in newest else {}),
            }
            for name in sorted(kinds)
        }
        return {"sets": [], "keys": keys, "lastStep": last}

    return await _read(info, node, read)


@HISTORY_READS.field("Run", "parquetHistory")
async def parquet_history(node: RunNode, info: Info, live_keys: Sequence[str]) -> dict[str, list[Any]]:
    """Return no files.

    Clients keep a file by its place in the list, whatever its address, and never ask for it again: after a
    resume they would show the rows from before. A run with rows has one that is in no file, so that clients
    read all rows from `history`, and say of a download that it is not complete.
    """
    return {"parquetUrls": [], "liveData": [] if node.last_step is None else [{STEP: 0}]}


@HISTORY_READS.field("Run", "logLines")
async def log_lines(
    node: RunNode,
    info: Info,
    first: int | None = None,
    after: str | None = None,
    last: int | None = None,
    use_improved_pagination: bool | None = None,
) -> dict[str, Any]:
    """Return the lines of output after a cursor, or the last ones."""
    if after and (parse_integer(after, _MAX_NUMBER) is None):
        raise InvalidArgument(f"invalid after={after[:60]!r}; expected the `endCursor` of a previous page")
    lines = await _read(info, node, _console_lines)
    begin = int(after) if after else 0
    count = max(0, min(_MAX_LINES, _MAX_LINES if first is None else first))
    if last is not None:
        count = max(0, min(_MAX_LINES, last))
        begin = max(0, len(lines) - count)
    page = lines[begin : begin + count]
    end = begin + len(page)
    return {
        "edges": [{"node": line, "cursor": str(line["number"] + 1)} for line in page],
        "pageInfo": {
            "endCursor": str(end) if page else after,
            "hasNextPage": bool(page) and end < len(lines),
            "hasPreviousPage": begin > 0,
            "startCursor": None,
        },
    }


def _console_lines(view: RunView) -> list[dict[str, Any]]:
    """Return the kept output as lines, by the time at which each ended."""
    _, pieces = view.console(_MAX_CONSOLE_BYTES)
    several = len({piece.host for piece in pieces}) > 1
    rest: dict[tuple[str, int | None, str], str] = {}
    lines: list[dict[str, Any]] = []

    def add(piece: ConsolePiece, text: str) -> None:
        lines.append(
            {
                "number": len(lines),
                "timestamp": iso_time(piece.time_ms),
                "level": "error" if piece.stream == "stderr" else "",
                "label": piece.host if several else "",
                "line": text,
            }
        )

    last: dict[tuple[str, int | None, str], ConsolePiece] = {}
    for piece in pieces:
        source = (piece.host, piece.rank, piece.stream)
        *texts, rest[source] = (rest.get(source, "") + piece.text).split("\n")
        last[source] = piece
        for text in texts:
            add(piece, text)
    for source, text in rest.items():
        if text:
            add(last[source], text)
    return lines


class _Spec(NamedTuple):
    """The rows that a request asks for."""

    keys: tuple[str, ...]
    samples: int
    min_step: float | None
    max_step: float | None

    @property
    def end_step(self) -> float | None:
        """The step before which the rows end.

        New clients ask for a page by its last step, and for as many rows as it has steps; old
        ones by the first step of the next page.
        """
        if self.min_step is None or self.max_step is None:
            return self.max_step
        is_last = self.samples == self.max_step - self.min_step + 1
        return self.max_step + 1 if is_last else self.max_step


def _spec(text: str) -> _Spec:
    """Return the spec of sampled history that a client sends.

    Raises:
        InvalidArgument: it is not a spec.
    """
    try:
        spec = json_values.decode(text)
    except (TypeError, ValueError):
        spec = None
    keys = spec.get("keys") if isinstance(spec, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys) or len(keys) > _MAX_KEYS:
        raise InvalidArgument(
            'invalid spec; expected JSON such as {"keys": ["_step", "loss"], "samples": 500}'
        )
    numbers = [spec.get(name) for name in ("samples", "minStep", "maxStep")]
    if not all(
        number is None or (isinstance(number, (int, float)) and abs(number) < 2**63) for number in numbers
    ):
        raise InvalidArgument("invalid spec: expected numbers for samples, minStep and maxStep")
    samples, first, end = numbers
    return _Spec(tuple(keys), _SAMPLES if samples is None else int(samples), first, end)


def _history(
    view: RunView, node: RunNode, keys: Sequence[str], first_step: float | None, last_step: float | None
) -> HistoryRows:
    """Return the rows from one step to another, both included: clients read a history in pages."""
    names = logged_names(keys)
    selection = LoggedSelection(names, None, first_step, last_step)
    others = view.logged_others(ValueSelection(names, first_step, last_step), MAX_OTHERS + 1)
    if len(others) > MAX_OTHERS:
        raise TooMuch(f"more than {MAX_OTHERS:,} texts, lists and objects: request fewer keys or steps")
    return HistoryRows(selection.columns(view), node.row.started_ms, others)


async def _read(info: Info, node: RunNode, work: Callable[[RunView], T]) -> T:
    try:
        return await info.context.read_run(node.row, work)
    except TooMuch as error:
        raise InvalidArgument(str(error)) from None
