"""Records: frames decoded, with everything in them checked, so that no reader need look at types again."""

from __future__ import annotations

from struct import Struct

from runvitals.journal import frames
from runvitals.journal.frames import CONSOLE, SAMPLE, SCHEMA
from runvitals.journal.json_codec import loads
from runvitals.journal.samples import split, unpack_row
from runvitals.model import records
from runvitals.model.limits import INT64, TIME_MS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

CONSOLE_HEAD = Struct("<Bq")  # which stream (1 = stdout, 2 = stderr), time in ms; the bytes themselves follow
STREAMS = {1: "stdout", 2: "stderr"}
_KINDS = {
    frames.START: records.START,
    frames.HISTORY: records.HISTORY,
    frames.EVENT: records.EVENT,
    frames.LIFECYCLE: records.LIFECYCLE,
    frames.INFO: records.INFO,
}


class Record:
    """One decoded record of a writer.

    Attributes:
        writer: the writer's name.
        type: one of the constants of `frames`.
        seq: its number within the writer.
        time_ms: UTC; of a sample or an output its time, of a JSON object its `"t"`, or 0 where it has none.
        value: the JSON object of a JSON record, the whole payload of a CONSOLE record, None for a sample. The
            fields of an object are of the types that docs/concepts/journal.md says.
        keys: of a sample.
        packed: a sample's values as they lie in the file, little-endian float64. Whoever gathers columns
            takes them whole, which is faster than a number at a time.
        size: of the payload, bytes.
        faults: what had to be mended in it, for a person; None where it was valid.
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
        """A sample's values in the order of its keys, unpacked anew at every call."""
        return unpack_row(self.packed)


def decode(writer: str, frame: frames.Frame, schemas: Mapping[int, Sequence[str]]) -> Record | None:
    """The record in a frame; None of a type that is not known.

    Raises:
        ValueError: a damaged record, and what is wrong with it.
    """
    type, seq, payload = frame.type, frame.seq, frame.payload
    if seq >= INT64:
        raise ValueError(f"its number is over {INT64 - 1}")
    if type == SAMPLE:
        time_ms, keys, packed = split(payload, schemas)
        if not 0 <= time_ms < TIME_MS:
            raise _no_time(time_ms)
        return Record(writer, type, seq, time_ms, None, keys, packed, len(packed))
    if type == CONSOLE:
        return Record(writer, type, seq, _console_time(payload), payload, size=len(payload))
    if type == SCHEMA:
        schema_id, declared = decode_schema(frame)
        return Record(writer, type, seq, 0, {"id": schema_id, "keys": declared}, size=len(payload))
    kind = _KINDS.get(type)
    if kind is None:
        return None
    value, faults = records.decoded(kind, loads(payload), payload)
    return Record(
        writer, type, seq, int(value.get("t") or 0), value, size=len(payload), faults=faults or None
    )


def decode_schema(frame: frames.Frame) -> tuple[int, list[str]]:
    """(id, keys) that a SCHEMA frame declares.

    Raises:
        ValueError: a damaged one.
    """
    return records.schema(loads(frame.payload))


def _console_time(payload: bytes) -> int:
    if len(payload) < CONSOLE_HEAD.size:
        raise ValueError(f"output has at least {CONSOLE_HEAD.size} bytes; this has {len(payload)}")
    stream, time_ms = CONSOLE_HEAD.unpack_from(payload)
    if stream not in STREAMS:
        raise ValueError(f"console stream {stream} is neither 1 (stdout) nor 2 (stderr)")
    if not 0 <= time_ms < TIME_MS:
        raise _no_time(time_ms)
    return int(time_ms)


def _no_time(time_ms: int) -> ValueError:
    return ValueError(f"its time is {time_ms}; ms UTC from 1970 to 9998 are allowed")
