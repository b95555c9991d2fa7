"""Converts a server's responses to the objects that reading journals returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from runvitals.model.ending import Ending
from runvitals.model.host import Host
from runvitals.model.run import Event, Rank, Run, RunAuthor, RunServiceAccount
from runvitals.readers.journals.arrays import numpy_or_none
from runvitals.readers.journals.html_views import SmallChart
from runvitals.readers.journals.logged_rows import LoggedCalls, LoggedRow
from runvitals.readers.journals.series import NAN, Column, Columns, Series
from runvitals.readers.journals.statistics import Statistics

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Latest:
    """The newest values of one host of a running run, and their times in ms UTC, by key."""

    run: str
    project: str
    host: str
    t: dict[str, int]
    values: dict[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class FleetSeries:
    """One metric aggregated over a group of runs, by bucket.

    Args:
        group: a project, host, state or run id; None for all runs.
        t: start of each bucket that contains a value, ms UTC.
        n: number of values per bucket.
        min, max, mean: float64.
    """

    group: str | None
    t: Column
    n: Column
    min: Column
    max: Column
    mean: Column


def listed_run(row: Mapping[str, Any]) -> Run:
    """Return a run of a list, which has not everything that is known about it."""
    rest: dict[str, Any] = {
        "command": [], "config": {}, "settings": {}, "machines": {}, "sources": {}, "ranks": [], "events": [],
        "lost_records": 0, "problems": [],
    }  # fmt: skip
    return run({**rest, **row})


def run(body: Mapping[str, Any]) -> Run:
    """Return the response of `/runs/{run}`."""
    spread = {
        **body,
        "ending": _ending(body),
        "hosts": [to_dataclass(Host, {**host, "ending": _ending(host)}) for host in body["hosts"]],
        "ranks": [to_dataclass(Rank, rank) for rank in body["ranks"]],
        "events": events(body["events"]),
        "author": _optional(RunAuthor, body.get("author")),
        "service_account": _optional(RunServiceAccount, body.get("service_account")),
    }
    return to_dataclass(Run, spread)


def _ending(body: Mapping[str, Any]) -> Ending:
    return Ending(body["state"], body.get("exit_code"), body.get("signal"), body.get("out_of_memory"))


def events(rows: Iterable[Mapping[str, Any]]) -> list[Event]:
    """Return the response of `/runs/{run}/events`."""
    return [
        to_dataclass(
            Event,
            {
                **event,
                "author": _optional(RunAuthor, event.get("author")),
                "service_account": _optional(RunServiceAccount, event.get("service_account")),
            },
        )
        for event in rows
    ]


def statistics(rows: Iterable[Mapping[str, Any]]) -> list[Statistics]:
    """Return the response of `/runs/{run}/statistics`."""
    return [to_dataclass(Statistics, entry) for entry in rows]


def latest(rows: Iterable[Mapping[str, Any]]) -> list[Latest]:
    """Return the response of `/latest`."""
    return [to_dataclass(Latest, entry) for entry in rows]


def columns(body: Mapping[str, Any]) -> Columns:
    """Return the series of `/runs/{run}/metrics`, key by key."""
    all_series = []
    for group in body["groups"]:
        t = _integers(group["t"])
        all_series += [
            Series(key, group["host"], group["role"], t, _numbers(values))
            for key, values in group["series"].items()
        ]
    return Columns(sorted(all_series, key=lambda series: series.key))


def fleet(body: Mapping[str, Any]) -> list[FleetSeries]:
    """Return the groups of `/aggregate`."""
    return [
        FleetSeries(
            group["group"],
            _integers(group["t"]),
            _integers(group["n"]),
            *(_numbers(group[name]) for name in ("min", "max", "mean")),
        )
        for group in body["groups"]
    ]


def calls(body: Mapping[str, Any]) -> LoggedCalls:
    """Return the rows of `/runs/{run}/history` at full resolution, ordered by time.

    The response has a column per name. Names that were logged at different steps are in different groups, and
    are joined here by process, step and time.
    """
    logged: dict[tuple[str, int | None, float, int, int], LoggedRow] = {}
    for group in body["groups"]:
        counts: dict[tuple[float, int], int] = {}
        for row, at in enumerate(zip(group["step"], group["t"], strict=True)):
            step, time_ms = at
            nth = counts[at] = counts.get(at, -1) + 1  # counts rows of the same step and millisecond
            data = {name: _number(values[row]) for name, values in group["series"].items()}
            call = logged.setdefault(
                (group["host"], group["rank"], step, time_ms, nth),
                LoggedRow(
                    int(step) if step == int(step) else step, int(time_ms), group["rank"], group["host"], {}
                ),
            )
            call.data.update(data)
    rows: dict[tuple[str, int | None, float, int], LoggedRow] = {key[:4]: row for key, row in logged.items()}
    for other in body.get("others", []):
        step, time_ms = other["step"], other["time_ms"]
        identity = other["host"], other["rank"], step, time_ms
        if identity not in rows:
            plain_step = int(step) if step == int(step) else step
            rows[identity] = LoggedRow(plain_step, time_ms, other["rank"], other["host"], {})
            logged[other["host"], other["rank"], step, time_ms, 0] = rows[identity]
        rows[identity].data[other["key"]] = other["value"]
    return LoggedCalls(sorted(logged.values(), key=lambda call: call.time_ms))


def small_charts(body: Mapping[str, Any]) -> list[SmallChart]:
    """Return a chart for each name of `/runs/{run}/history`, of the first rank that logged it."""
    values_by_name: dict[str, tuple[int | None, list[float]]] = {}
    for group in sorted(body["groups"], key=lambda group: group["t"][:1]):
        for name, values in group["series"].items():
            rank, joined = values_by_name.setdefault(name, (group["rank"], []))
            if rank == group["rank"] and not group["replaced"]:
                joined += [_number(value) for value in values]
    return [SmallChart(name, "", values) for name, (_, values) in values_by_name.items()]


def to_dataclass(kind: type[T], body: Mapping[str, Any]) -> T:
    """Return a dataclass from the fields it knows; a newer server may send more."""
    names = (field.name for field in fields(kind))  # type: ignore[arg-type]  # all of them are dataclasses
    return kind(**{name: body[name] for name in names if name in body})


def _optional(kind: type[T], body: Mapping[str, Any] | None) -> T | None:
    return None if body is None else to_dataclass(kind, body)


def _integers(values: list[int]) -> Column:
    numpy = numpy_or_none()
    return values if numpy is None else numpy.array(values, numpy.int64)


def _numbers(values: list[float | None]) -> Column:
    """Float64 values; null becomes NaN."""
    numpy = numpy_or_none()
    return [_number(value) for value in values] if numpy is None else numpy.array(values, numpy.float64)


def _number(value: float | None) -> float:
    return NAN if value is None else float(value)
