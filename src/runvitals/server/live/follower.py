"""A run as it goes on, as server-sent events `news`, each a JSON object with those of

    samples   new readings, rates included: [{"host", "role", "t", "values": {key: number or null}}]
    calls     new `log()` calls: [{"host", "rank", "step", "t", "values": {name: number}}]
    run       the run's facts, first and whenever they changed: as `GET /runs/{run}`
    reload    true where too much is new for an event: ask for the series again

and a comment every 15 s where nothing is new. The id of an event says what was sent so far, so that a client
that comes back with it (`Last-Event-ID`, which browsers send by themselves) misses nothing and gets nothing
twice, whether or not the server is still the same process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_core import to_json

from runvitals.model.run import Run
from runvitals.model.run_json import run_as_dict
from runvitals.query.rates import between, rate_of
from runvitals.server.library import Position, RunView
from runvitals.server.series import cursor

POLL_S = 0.5
IDLE_POLL_S = 3.0
"""For a run that has ended, which may be resumed."""
HEARTBEAT_S = 15.0
MAX_SAMPLES = 3000
"""In one event. A laptop that slept for a night asks for the whole series again."""


class Follower:
    """One client: what it has got, and what is news to it.

    Args:
        position: the last record of each writer that it has got, `writer:number,writer:number…`, as in
            `Metrics.cursor` and the events' ids.
        clock: the time now, ms UTC.

    Raises:
        ValueError: a position of another form.
    """

    def __init__(self, position: str, clock: Callable[[], int]) -> None:
        self.running = True
        self._clock = clock
        self._at: Position = parse_position(position)
        self._counters: dict[str, dict[str, tuple[int, float]]] = {}
        self._facts = b""

    def news(self, view: RunView, now: Position, with_facts: bool = True) -> bytes:
        """One event, or nothing. What it tells is known from now on.

        Args:
            now: how far the view has come.
            with_facts: the run's facts may have changed, not its samples alone.
        """
        told = self.told(view, now, with_facts)
        return _event(told, self._at) if told else b""

    @property
    def cursor(self) -> str:
        """How far this client has been served."""
        return cursor(self._at)

    def told(self, view: RunView, now: Position, with_facts: bool = True) -> dict[str, Any]:
        """What is new, as the event's JSON object; empty where nothing is."""
        told: dict[str, Any] = {}
        if view.count_between(self._at, now) > MAX_SAMPLES:
            told["reload"] = True
            self._counters.clear()
        else:
            rows = {"samples": self._samples(view, now), "calls": self._calls(view, now)}
            told |= {name: found for name, found in rows.items() if found}
        if with_facts:
            told |= self._changed_facts(view.run(self._clock()))
        self._at = now
        return told

    def _changed_facts(self, run: Run) -> dict[str, Any]:
        self.running = run.state == "running"
        facts = _steady(run)
        if facts == self._facts:
            return {}
        self._facts = facts
        return {"run": run_as_dict(run)}

    def _samples(self, view: RunView, now: Position) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for source, host, role, time_ms, values in view.samples_between(self._at, now):
            counters = self._counters.get(source)
            if counters is None:
                counters = self._counters[source] = view.newest(source, self._at)
            row = {**values, **_rates(values, time_ms, counters)}
            found.append({"host": host, "role": role, "t": time_ms, "values": row})
        return found

    def _calls(self, view: RunView, now: Position) -> list[dict[str, Any]]:
        return [
            {"host": host, "rank": rank, "step": step, "t": time_ms, "values": values}
            for host, rank, step, time_ms, values in view.calls_between(self._at, now)
        ]


def parse_position(text: str) -> dict[str, int]:
    """The last record of each writer.

    Raises:
        ValueError: not `writer:number,writer:number…`

    Example:
        >>> parse_position("monitor.node1.19f3a:61,train.node1.4711.19f3b:7")
        {'monitor.node1.19f3a': 61, 'train.node1.4711.19f3b': 7}
    """
    seqs: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        writer, colon, seq = part.rpartition(":")
        if not (colon and seq.isascii() and seq.isdigit() and len(seq) < 20):
            raise ValueError(f"{part[:80]!r} is not a valid cursor; expected writer:number")
        seqs[writer] = int(seq)
    return seqs


def _rates(
    values: dict[str, float], time_ms: int, counters: dict[str, tuple[int, float]]
) -> dict[str, float]:
    """The rates of one sample's counters, each since the last sample that had it."""
    found: dict[str, float] = {}
    for key, value in values.items():
        rate = rate_of(key)
        if rate is None:
            continue
        before = counters.get(key)
        if before is not None:
            found[rate.key] = between(*before, time_ms, value, rate.factor)
        counters[key] = (time_ms, value)
    return found


def _steady(run: Run) -> bytes:
    """What of a run does not change by itself with every sample."""
    plain = run_as_dict(run)
    for name in ("last", "duration_ms", "ended_ms"):
        del plain[name]
    for host in plain["hosts"]:
        del host["last_ms"]
    return to_json(plain, inf_nan_mode="null", fallback=str)


def _event(told: dict[str, Any], at: Position) -> bytes:
    return b"event: news\nid: %b\ndata: %b\n\n" % (
        cursor(at).encode(),
        to_json(told, inf_nan_mode="null", fallback=str),
    )
