"""Records: decoded frames. Every field is validated here, so readers need not check types."""

from __future__ import annotations

from struct import Struct

from runvitals.base.json_codec import loads
from runvitals.journal import frames
from runvitals.journal.frames import CONSOLE, SAMPLE, SCHEMA
from runvitals.journal.samples import split, unpack_row
from runvitals.journal.sealing import whole_records
from runvitals.model import records
from runvitals.model.limits import INT64, TIME_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

CONSOLE_HEAD = Struct("<Bq")  # stream (1 = stdout, 2 = stderr) and time in ms; the output follows
STREAMS = {1: "stdout", 2: "stderr"}
_KINDS = {
    frames.START: records.START,
    frames.HISTORY: records.HISTORY,
    frames.EVENT: records.EVENT,
    frames.LIFECYCLE: records.LIFECYCLE,
    frames.INFO: records.INFO,
    frames.MEDIA: records.MEDIA,
}


class Record:
    """A decoded record.

    Attributes:
        writer: the writer's name.
        type: one of the constants of `frames`.
        seq: its number within the writer.
        time_ms: time in ms UTC; 0 for a JSON record without `"t"`.
        value: the JSON object of a JSON record, with fields of the types in docs/concepts/journal.md; the
            whole payload of a CONSOLE record; None for a sample.
        keys: the keys of a sample.
        packed: the values of a sample as in the file, little-endian float64. Building columns from them is
            faster than from single numbers.
        size: size of the payload in bytes.
        faults: what was repaired, as description → count; None if the record was valid.
    """

    __slots__ = ("faults", "keys", "packed", "seq", "size", "time_ms", "type", "value", "writer")

    def __init__(
        self,
        writer: str,
        type: int,
        seq: int,
        time_ms: int,
        value: Any = None,
        keys: Sequence[str] = (),
        packed: bytes = b"",
        size: int = 0,
        faults: Mapping[str, int] | None = None,
    ) -> None:
        self.writer = writer
        self.type = type
        self.seq = seq
        self.time_ms = time_ms
        self.value = value
        self.keys = keys
        self.packed = packed
        self.size = size
        self.faults = faults

    @property
    def values(self) -> tuple[float, ...]:
        """A sample's values in the order of its keys. Unpacks them at every call."""
        return unpack_row(self.packed)


def decode(writer: str, frame: frames.Frame, schemas: Mapping[int, Sequence[str]]) -> Record | None:
    """Decode a frame. Returns None for an unknown type.

    Args:
        writer: the name of the frame's writer.
        frame: the frame.
        schemas: schema id → keys, as declared so far by this writer.

    Raises:
        ValueError: the record is damaged; the message says how.
    """
    type, seq, payload = frame.type, frame.seq, frame.payload
    if seq >= INT64:
        raise ValueError(f"its number is larger than {INT64 - 1}")
    if type == SAMPLE:
        time_ms, keys, packed = split(payload, schemas)
        if not 0 <= time_ms < TIME_MS:
            raise _invalid_time(time_ms)
        return Record(writer, type, seq, time_ms, None, keys, packed, len(packed))
    if type == CONSOLE:
        return Record(writer, type, seq, _console_time(payload), payload, size=len(payload))
    if type == SCHEMA:
        schema_id, declared = decode_schema(frame)
        return Record(writer, type, seq, 0, {"id": schema_id, "keys": declared}, size=len(payload))
    kind = _KINDS.get(type)
    if kind is None:
        return None
    value, faults = records.decode(kind, loads(payload), payload)
    return Record(
        writer, type, seq, int(value.get("t") or 0), value, size=len(payload), faults=faults or None
    )


def decode_schema(frame: frames.Frame) -> tuple[int, list[str]]:
    """Return the id and keys of a SCHEMA frame, or raise ValueError for a damaged one."""
    return records.schema(loads(frame.payload))


def _console_time(payload: bytes) -> int:
    if len(payload) < CONSOLE_HEAD.size:
        raise ValueError(f"console record of {len(payload)} bytes; expected at least {CONSOLE_HEAD.size}")
    stream, time_ms = CONSOLE_HEAD.unpack_from(payload)
    if stream not in STREAMS:
        raise ValueError(f"console stream is {stream}; expected 1 (stdout) or 2 (stderr)")
    if not 0 <= time_ms < TIME_MS:
        raise _invalid_time(time_ms)
    return int(time_ms)


def _invalid_time(time_ms: int) -> ValueError:
    return ValueError(f"its time is {time_ms}; expected ms UTC from 1970 to 9998")


def json_records(data: bytes, types: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the values of the records of these types in part of a file. Damaged records are skipped.

    Args:
        data: the part of the file.
        types: of records whose payload is JSON, such as `frames.LIFECYCLE`.
    """
    values: list[dict[str, Any]] = []
    for frame in whole_records(data):
        if frame.type in types:
            try:
                record = decode("", frame, {})
            except ValueError:
                continue
            if record is not None:
                values.append(record.value)
    return values
