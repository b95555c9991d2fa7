"""Decodes the records of an envelope into what the metadata store keeps.

Events, processes, endings, facts and console output.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from runvitals.model import json_values
from runvitals.model import records as valid
from runvitals.model.device import RunDevice, devices_of
from runvitals.model.ending import Ending
from runvitals.model.limits import DEPTH
from runvitals.model.state import ENDED_STATES, STATES, is_ended
from runvitals.server.access.principals import Principal
from runvitals.server.http.body_limits import Limits
from runvitals.server.http.request_errors import HttpRejection, malformed, out_of_range, too_large
from runvitals.server.ingest.columns import check_time
from runvitals.server.ingest.envelope import Envelope, Int64
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.log_summaries import TALLY
from runvitals.server.runs.storage.media import StoredMedia
from runvitals.server.runs.storage.pending_summaries import GatheredRows
from runvitals.server.runs.storage.search_columns import LOGGED
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import RegisteredWriter
from runvitals.server.runs.storage.writers import StoredProcess, WriterEnd

_EVENT_FIELDS = ("t", "name", "level", "text")
_UNASSIGNED = 0
"""Run and writer id until `EnvelopeMetadata.assigned_to`."""
_NOT_SECTIONS = ("removed", LOGGED, TALLY)
"""Names in an info record that are not stored: the server computes the statistics of logged rows itself."""


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


class _ConsoleOutput(msgspec.Struct):
    t: Int64
    stream: int
    text: str


class _Info(msgspec.Struct):
    t: Int64


class _Media(msgspec.Struct):
    t: Int64


class ObservedDevices(NamedTuple):
    """Devices that a run reported at a time, ms UTC."""

    run_id: int
    devices: list[RunDevice]
    time_ms: int


@dataclass(slots=True)
class EnvelopeMetadata:
    """The metadata of an envelope to store. `assigned_to` fills in run, writer and sender.

    Args:
        sender: the owner of the key that sent it, with the key's limits; None without accounts.
    """

    events: list[StoredEvent] = field(default_factory=list)
    processes: list[StoredProcess] = field(default_factory=list)
    ends: list[WriterEnd] = field(default_factory=list)
    updates: list[SectionUpdate] = field(default_factory=list)
    console: list[ConsoleLine] = field(default_factory=list)
    media: list[StoredMedia] = field(default_factory=list)
    devices: list[ObservedDevices] = field(default_factory=list)
    last_ms: int = 0
    rows: GatheredRows | None = None
    sender: Principal | None = None

    def assigned_to(self, writer: RegisteredWriter, sender: Principal | None) -> EnvelopeMetadata:
        """A copy with the ids of a registered writer and its run, and with who sent it."""
        run_id, writer_id, host = writer.run_id, writer.writer_id, writer.host
        return EnvelopeMetadata(
            [replace(event, run_id=run_id, writer_id=writer_id) for event in self.events],
            [replace(process, run_id=run_id, host=host) for process in self.processes],
            [replace(end, writer_id=writer_id) for end in self.ends],
            [replace(update, run_id=run_id, host=host) for update in self.updates],
            [replace(line, run_id=run_id, writer_id=writer_id) for line in self.console],
            [replace(media, run_id=run_id, writer_id=writer_id) for media in self.media],
            [
                ObservedDevices(run_id, [replace(device, host=host) for device in devices], time_ms)
                for _, devices, time_ms in self.devices
            ],
            self.last_ms,
            sender=sender,
        )


def decode_metadata(envelope: Envelope, now_ms: int, limits: Limits) -> EnvelopeMetadata | None:
    """The records of an envelope, decoded; None if it has none.

    Raises:
        HttpRejection: 400, 413 or 422, with the index of the invalid record.
    """
    records = envelope.records
    if not records:
        return None
    if len(records) > limits.records:
        raise too_large(f"{len(records)} records; at most {limits.records} are allowed in one envelope")
    metadata = EnvelopeMetadata()
    for index, (number, kind, value) in enumerate(records):
        try:
            json_values.check(value, DEPTH + 1)
            decode = _KINDS.get(kind)
            if decode is None:
                t = _unknown(metadata, number, kind, value, now_ms)
            else:
                t = decode(metadata, number, value)
            check_time("t", t, now_ms, limits)
        except HttpRejection as error:
            raise HttpRejection(error.status, f"records[{index}]: {error.text}") from None
        except msgspec.ValidationError as error:
            raise malformed(f"records[{index}], of kind {kind}: {error}") from None
        except ValueError as error:
            raise out_of_range(f"records[{index}], of kind {kind}: {error}") from None
        metadata.last_ms = max(metadata.last_ms, t)
    return metadata


def _event(metadata: EnvelopeMetadata, number: int, value: dict[str, Any]) -> int:
    valid.check(valid.EVENT, value)
    fields = msgspec.convert(value, _Event)
    data = {key: content for key, content in value.items() if key not in _EVENT_FIELDS}
    name = valid.event_name(fields.name)
    event = StoredEvent(_UNASSIGNED, fields.t, name, fields.level, fields.text, data, _UNASSIGNED, number)
    event.check()
    metadata.events.append(event)
    return fields.t


def _lifecycle(metadata: EnvelopeMetadata, number: int, value: dict[str, Any]) -> int:
    record = msgspec.convert(value, _Lifecycle)
    decode = _LIFECYCLES.get(record.what)
    unknown_state = record.what == "end" and record.state is not None and record.state not in STATES
    if decode is None or unknown_state:
        return _unknown(metadata, number, f"lifecycle.{record.what}", value, record.t)
    decode(metadata, number, record)
    return record.t


def _unknown(
    metadata: EnvelopeMetadata, number: int, name: str, value: dict[str, Any], default_ms: int
) -> int:
    """Keep a record of an unknown kind, which a newer client may send, as an event with all its data.

    Args:
        default_ms: its time, if it has none.
    """
    sent_ms = value.get("t")
    t = sent_ms if isinstance(sent_ms, int) and not isinstance(sent_ms, bool) else default_ms
    data = {key: content for key, content in value.items() if key != "t"}
    event = StoredEvent(_UNASSIGNED, t, name, "info", "", data, _UNASSIGNED, number)
    event.check()
    metadata.events.append(event)
    return t


def _attach(metadata: EnvelopeMetadata, number: int, record: _Lifecycle) -> None:
    metadata.processes.append(
        StoredProcess(
            _UNASSIGNED,
            "",
            _pid(record),
            rank=record.rank,
            local_rank=record.local_rank,
            world_size=record.world_size,
        )
    )


def _exit(metadata: EnvelopeMetadata, number: int, record: _Lifecycle) -> None:
    metadata.processes.append(
        StoredProcess(
            _UNASSIGNED,
            "",
            _pid(record),
            ended_ms=record.t,
            exit_code=record.exit_code,
            signal=record.signal,
            out_of_memory=record.out_of_memory,
        )
    )


def _pid(record: _Lifecycle) -> int:
    if record.pid is None:
        raise malformed(f"{record.what}: pid is missing")
    return record.pid


def _gap(metadata: EnvelopeMetadata, number: int, record: _Lifecycle) -> None:
    if record.since is None:
        raise malformed("gap: since, a time in ms UTC, is missing")
    silent_s = (record.t - record.since) / 1000
    text = f"no samples for {silent_s:.1f} s: the monitor was restarted"
    data = {"since": record.since}
    metadata.events.append(
        StoredEvent(_UNASSIGNED, record.t, "gap", "warning", text, data, _UNASSIGNED, number)
    )


def _end(metadata: EnvelopeMetadata, number: int, record: _Lifecycle) -> None:
    if not is_ended(record.state):
        raise out_of_range(f"invalid state {record.state!r}; expected one of {', '.join(ENDED_STATES)}")
    ending = Ending(record.state, record.exit_code, record.signal, record.out_of_memory)
    metadata.ends.append(WriterEnd(_UNASSIGNED, ending, record.t))


def _info(metadata: EnvelopeMetadata, number: int, value: dict[str, Any]) -> int:
    valid.check(valid.INFO, value)
    t = msgspec.convert(value, _Info).t
    others: dict[str, Any] = {}
    for section, names in (value.get("removed") or {}).items():
        metadata.updates.append(
            SectionUpdate(_UNASSIGNED, section, {}, t, removed=tuple(names)).to_stored_form()
        )
    for section, values in value.items():
        if section in _NOT_SECTIONS:
            continue
        if isinstance(values, dict):
            metadata.updates.append(SectionUpdate(_UNASSIGNED, section, values, t).to_stored_form())
            if section == "machine" and (devices := devices_of("", values)):
                metadata.devices.append(ObservedDevices(_UNASSIGNED, devices, t))
        elif section != "t":
            others[section] = values
    if others:
        _unknown(metadata, number, "info", others, t)
    return t


def _console(metadata: EnvelopeMetadata, number: int, value: dict[str, Any]) -> int:
    output = msgspec.convert(value, _ConsoleOutput)
    line = ConsoleLine(_UNASSIGNED, _UNASSIGNED, number, output.t, output.stream, output.text)
    line.check()
    metadata.console.append(line)
    return output.t


def _media(metadata: EnvelopeMetadata, number: int, value: dict[str, Any]) -> int:
    valid.check(valid.MEDIA, value)
    record, _ = valid.decode(valid.MEDIA, value)
    t = msgspec.convert(value, _Media).t
    media = StoredMedia(
        _UNASSIGNED, _UNASSIGNED, number, t, record["step"], record["key"], record["kind"], record["items"]
    )
    media.check()
    metadata.media.append(media)
    return t


_KINDS: dict[str, Callable[[EnvelopeMetadata, int, dict[str, Any]], int]] = {
    "event": _event,
    "lifecycle": _lifecycle,
    "info": _info,
    "console": _console,
    "media": _media,
}
_LIFECYCLES: dict[str, Callable[[EnvelopeMetadata, int, _Lifecycle], None]] = {
    "attach": _attach,
    "finish": _exit,
    "exit": _exit,
    "gap": _gap,
    "end": _end,
}
