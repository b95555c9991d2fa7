"""Records of a journal as the catalogue takes them: what happened, who came and went, facts, output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from runvitals.model import records as valid
from runvitals.model.ending import Ending
from runvitals.model.limits import DEPTH
from runvitals.model.state import ENDED_STATES, STATES, is_ended
from runvitals.server.ingest.columns import check_time
from runvitals.server.ingest.envelope import Envelope, Int64
from runvitals.server.ingest.errors import Refused, malformed, out_of_range, too_large
from runvitals.server.ingest.limits import Limits
from runvitals.store.metadata import (
    ConsoleLine,
    DeviceRecord,
    SectionUpdate,
    StoredEvent,
    WatchedProcess,
    WriterEnd,
)
from runvitals.store.metadata.devices import devices_of
from runvitals.store.metadata.log_summaries import TALLY, LoggedRows
from runvitals.store.metadata.search_columns import LOGGED
from runvitals.store.metadata.writer_registration import RegisteredWriter

_OF_EVENT = ("t", "name", "level", "text")
_NOBODY = 0
_NO_SECTIONS = ("removed", LOGGED, TALLY)  # the server reckons what rows come to by itself


class _Event(msgspec.Struct):
    t: Int64
    name: str = ""
    level: str = "info"
    text: str = ""


class _Lifecycle(msgspec.Struct):
    t: Int64
    what: str
    pid: Int64 | None = None
    rank: Int64 | None = None
    local_rank: Int64 | None = None
    world_size: Int64 | None = None
    exit_code: Int64 | None = None
    signal: Int64 | None = None
    out_of_memory: bool | None = None
    since: Int64 | None = None
    state: str | None = None


class _Printed(msgspec.Struct):
    t: Int64
    stream: int
    text: str


class _Timed(msgspec.Struct):
    t: Int64


class Seen(NamedTuple):
    """Devices that a run saw at a time, ms UTC."""

    run_id: int
    devices: list[DeviceRecord]
    time_ms: int


@dataclass(slots=True)
class Notes:
    """What an envelope says beside its samples. Whose it is, is filled in by `of`."""

    events: list[StoredEvent] = field(default_factory=list)
    processes: list[WatchedProcess] = field(default_factory=list)
    ends: list[WriterEnd] = field(default_factory=list)
    updates: list[SectionUpdate] = field(default_factory=list)
    printed: list[ConsoleLine] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    last_ms: int = 0
    rows: LoggedRows | None = None

    def of(self, who: RegisteredWriter) -> Notes:
        """The same, of a writer that has joined."""
        run_id, writer_id, host = who.run_id, who.writer_id, who.host
        return Notes(
            [replace(one, run_id=run_id, writer_id=writer_id) for one in self.events],
            [replace(one, run_id=run_id, host=host) for one in self.processes],
            [replace(one, writer_id=writer_id) for one in self.ends],
            [replace(one, run_id=run_id, host=host) for one in self.updates],
            [replace(one, run_id=run_id, writer_id=writer_id) for one in self.printed],
            [Seen(run_id, [replace(one, host=host) for one in some], t) for _, some, t in self.seen],
            self.last_ms,
        )


def notes(envelope: Envelope, now_ms: int, limits: Limits) -> Notes | None:
    """The records of an envelope; None where it has none.

    Raises:
        Refused: 400, 413 or 422, naming the record.
    """
    records = envelope.records
    if not records:
        return None
    if len(records) > limits.records:
        raise too_large(f"{len(records)} records; at most {limits.records} are allowed in one envelope")
    found = Notes()
    for index, (number, kind, value) in enumerate(records):
        try:
            fold = _KINDS.get(kind)
            t = _unknown(found, number, kind, value, now_ms) if fold is None else fold(found, number, value)
            check_time("t", t, now_ms, limits)
        except Refused as error:
            raise Refused(error.status, f"records[{index}]: {error.text}") from None
        except msgspec.ValidationError as error:
            raise malformed(f"records[{index}], of kind {kind}: {error}") from None
        except (ValueError, RecursionError) as error:
            raise out_of_range(f"records[{index}], of kind {kind}: {error}") from None
        found.last_ms = max(found.last_ms, t)
    return found


def check_depth(value: object, depth: int = 0) -> None:
    """
    Raises:
        ValueError: lists and maps in each other beyond `DEPTH`: readers of JSON have such limits.
    """
    if depth > DEPTH:
        raise ValueError(f"lists and maps {DEPTH} deep in each other are allowed, and no more")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        if isinstance(one, (dict, list)):
            check_depth(one, depth + 1)


def _event(found: Notes, number: int, value: dict[str, Any]) -> int:
    check_depth(value)
    valid.check(valid.EVENT, value)
    one = msgspec.convert(value, _Event)
    rest = {key: content for key, content in value.items() if key not in _OF_EVENT}
    event = StoredEvent(_NOBODY, one.t, one.name, one.level, one.text, rest, _NOBODY, number)
    event.check()
    found.events.append(event)
    return one.t


def _lifecycle(found: Notes, number: int, value: dict[str, Any]) -> int:
    one = msgspec.convert(value, _Lifecycle)
    fold = _LIFECYCLES.get(one.what)
    newer = one.what == "end" and one.state is not None and one.state not in STATES
    if fold is None or newer:
        return _unknown(found, number, f"lifecycle.{one.what}", value, one.t)
    fold(found, number, one)
    return one.t


def _unknown(found: Notes, number: int, name: str, value: dict[str, Any], otherwise_ms: int) -> int:
    """What a newer client tells is kept as an event, with all it says, for whoever knows more.

    Args:
        otherwise_ms: its time, where it has none.
    """
    said = value.get("t")
    t = said if isinstance(said, int) and not isinstance(said, bool) else otherwise_ms
    rest = {key: content for key, content in value.items() if key != "t"}
    event = StoredEvent(_NOBODY, t, name, "info", "", rest, _NOBODY, number)
    event.check()
    found.events.append(event)
    return t


def _attach(found: Notes, number: int, one: _Lifecycle) -> None:
    found.processes.append(
        WatchedProcess(
            _NOBODY, "", _pid(one), rank=one.rank, local_rank=one.local_rank, world_size=one.world_size
        )
    )


def _exit(found: Notes, number: int, one: _Lifecycle) -> None:
    found.processes.append(
        WatchedProcess(
            _NOBODY,
            "",
            _pid(one),
            ended_ms=one.t,
            exit_code=one.exit_code,
            signal=one.signal,
            out_of_memory=one.out_of_memory,
        )
    )


def _pid(one: _Lifecycle) -> int:
    if one.pid is None:
        raise malformed(f"{one.what} needs pid")
    return one.pid


def _gap(found: Notes, number: int, one: _Lifecycle) -> None:
    if one.since is None:
        raise malformed("gap needs since, a time in ms UTC")
    silent_s = (one.t - one.since) / 1000
    text = f"no samples for {silent_s:.1f} s: the monitor was restarted"
    found.events.append(
        StoredEvent(_NOBODY, one.t, "gap", "warning", text, {"since": one.since}, _NOBODY, number)
    )


def _end(found: Notes, number: int, one: _Lifecycle) -> None:
    if not is_ended(one.state):
        raise out_of_range(f"state {one.state!r}: {', '.join(ENDED_STATES)} are allowed")
    ending = Ending(one.state, one.exit_code, one.signal, one.out_of_memory)
    found.ends.append(WriterEnd(_NOBODY, ending, one.t))


def _info(found: Notes, number: int, value: dict[str, Any]) -> int:
    check_depth(value)
    valid.check(valid.INFO, value)
    t = msgspec.convert(value, _Timed).t
    others: dict[str, Any] = {}
    for section, names in (value.get("removed") or {}).items():
        found.updates.append(SectionUpdate(_NOBODY, section, {}, t, removed=tuple(names)).checked())
    for section, values in value.items():
        if section in _NO_SECTIONS:
            continue
        if isinstance(values, dict):
            found.updates.append(SectionUpdate(_NOBODY, section, values, t).checked())
            if section == "machine" and (devices := devices_of("", values)):
                found.seen.append(Seen(_NOBODY, devices, t))
        elif section != "t":
            others[section] = values
    if others:
        _unknown(found, number, "info", others, t)
    return t


def _console(found: Notes, number: int, value: dict[str, Any]) -> int:
    one = msgspec.convert(value, _Printed)
    printed = ConsoleLine(_NOBODY, _NOBODY, number, one.t, one.stream, one.text)
    printed.check()
    found.printed.append(printed)
    return one.t


_KINDS: dict[str, Callable[[Notes, int, dict[str, Any]], int]] = {
    "event": _event,
    "lifecycle": _lifecycle,
    "info": _info,
    "console": _console,
}
_LIFECYCLES: dict[str, Callable[[Notes, int, _Lifecycle], None]] = {
    "attach": _attach,
    "finish": _exit,
    "exit": _exit,
    "gap": _gap,
    "end": _end,
}
