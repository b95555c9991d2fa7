"""A run as it continues: server-sent events named `news`, each a JSON object with some of the members below.

    samples   new samples, rates included: [{"host", "role", "t", "values": {key: number or null}}]
    calls     new `log()` calls: [{"host", "rank", "step", "t", "values": {name: number}}]
    run       the run's facts, in the first event and whenever they change: as `GET /runs/{run}`
    reload    true if too much is new for one event: request the series again

When the run is deleted, an event named `deleted` comes last.
A comment comes every 15 s while nothing is new. The id of an event is the position in the run. A client that
reconnects with it (`Last-Event-ID`, which browsers send automatically) misses nothing and gets nothing twice,
even if the server was restarted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runvitals.model.run import Run
from runvitals.model.run_json import run_as_dict
from runvitals.readers.journals.rates import rate_between, rate_of
from runvitals.server.charts.series import cursor
from runvitals.server.library.run_library import Position, RunView

POLL_S = 0.5
IDLE_POLL_S = 3.0
"""For a run that has ended: it may be resumed."""
HEARTBEAT_S = 15.0
MAX_SAMPLES = 3000
"""In one event. A laptop that was suspended for a night requests the whole series again."""


class Follower:
    """Computes what is new for a client since its last position.

    Args:
        position: the last record of each writer that the client has, `writer:number,writer:number…`, as in
            `Metrics.cursor` and the events' ids.
        clock: the time now, ms UTC.

    Raises:
        ValueError: an invalid position.
    """

    def __init__(self, position: str, clock: Callable[[], int]) -> None:
        self.running = True
        self._clock = clock
        self._at: Position = parse_position(position)
        self._counters: dict[str, dict[str, tuple[int, float]]] = {}
        self._facts = b""

    def event(self, view: RunView, now: Position, with_facts: bool = True) -> bytes:
        """Return what is new as a server-sent event, and move the client's position to `now`.

        It is empty if nothing is new.

        Args:
            now: how far the view has read the run.
            with_facts: whether the run's facts may have changed too.
        """
        changes = self.changes(view, now, with_facts)
        return _event(changes, self._at) if changes else b""

    @property
    def cursor(self) -> str:
        """The client's position, as text."""
        return cursor(self._at)

    def changes(self, view: RunView, now: Position, with_facts: bool = True) -> dict[str, Any]:
        """Return what is new, as the JSON object of an event, and move the position to `now`.

        It is empty if nothing is new.
        """
        changes: dict[str, Any] = {}
        if view.count_between(self._at, now) > MAX_SAMPLES:
            changes["reload"] = True
            self._counters.clear()
        else:
            rows = {"samples": self._samples(view, now), "calls": self._calls(view, now)}
            changes |= {name: new for name, new in rows.items() if new}
        if with_facts:
            changes |= self._changed_facts(view.run(self._clock()))
        self._at = now
        return changes

    def _changed_facts(self, run: Run) -> dict[str, Any]:
        self.running = run.state == "running"
        facts = _stable_facts(run)
        if facts == self._facts:
            return {}
        self._facts = facts
        return {"run": run_as_dict(run)}

    def _samples(self, view: RunView, now: Position) -> list[dict[str, Any]]:
        samples: list[dict[str, Any]] = []
        for source, host, role, time_ms, values in view.samples_between(self._at, now):
            counters = self._counters.get(source)
            if counters is None:
                counters = self._counters[source] = view.newest(source, self._at)
            row = {**values, **_rates(values, time_ms, counters)}
            samples.append({"host": host, "role": role, "t": time_ms, "values": row})
        return samples

    def _calls(self, view: RunView, now: Position) -> list[dict[str, Any]]:
        return [
            {"host": host, "rank": rank, "step": step, "t": time_ms, "values": values}
            for host, rank, step, time_ms, values in view.rows_between(self._at, now)
        ]


def parse_position(text: str) -> dict[str, int]:
    """Return the last record of each writer.

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
    """Return the rates of one sample's counters, each since the last sample that had it."""
    rates: dict[str, float] = {}
    for key, value in values.items():
        rate = rate_of(key)
        if rate is None:
            continue
        before = counters.get(key)
        if before is not None:
            rates[rate.key] = rate_between(*before, time_ms, value, rate.factor)
        counters[key] = (time_ms, value)
    return rates


def _stable_facts(run: Run) -> bytes:
    """Return the facts of a run, without those that change with every sample."""
    plain = run_as_dict(run)
    for name in ("last", "duration_ms", "ended_ms"):
        del plain[name]
    for host in plain["hosts"]:
        del host["last_ms"]
    if plain["verdict"] is not None:
        del plain["verdict"]["judged_ms"]
    return _json(plain)


def _event(changes: dict[str, Any], at: Position) -> bytes:
    return b"event: news\nid: %b\ndata: %b\n\n" % (cursor(at).encode(), _json(changes))


def _json(value: Any) -> bytes:
    from runvitals.server.http.responses import json_bytes

    return json_bytes(value)
