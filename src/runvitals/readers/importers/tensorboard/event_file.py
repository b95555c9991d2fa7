"""Reads the messages of an event file.

The format is described at the destination `tensorboard`, which writes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from runvitals.base.protobuf import Malformed, fields, read_double, read_doubles, to_signed
from runvitals.relay.destinations.tensorboard.tfrecords import masked_sum

_HEAD = struct.Struct("<QI")
_SUM = struct.Struct("<I")
_MAX_BYTES = 256 * 1024 * 1024
_DT_FLOAT, _DT_DOUBLE = 1, 2
_SESSION_START = 1
Fields = dict[int, list[Any]]


@dataclass(slots=True)
class EventValue:
    """A value that was logged under a tag.

    Args:
        kind: `number`, `text`, `image`, `audio` or `histogram`.
        value: a number; a text; bytes of pictures or sounds; (counts, edges).
    """

    tag: str
    kind: str
    value: Any


@dataclass(slots=True)
class LoggedEvent:
    """The values of one time and step, and hyper-parameters or how the run ended; or that a writer began.

    Args:
        begins: whether a writer began here, anew or after a restart.
        start_step: the first step of what follows, where the writer announced it.
        status: of the end of the run: 1 for success, 2 for failure; 0 unless this is the end.
        unknown: names of plugins whose values are not read.
    """

    time_ms: int
    step: int
    begins: bool = False
    start_step: int | None = None
    values: list[EventValue] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    status: int = 0
    unknown: list[str] = field(default_factory=list)


class EventFile:
    """Reads one file, which may still be growing.

    Attributes:
        damaged: number of records that were skipped because they are damaged.
        cut: whether the file ends in the middle of a record.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.damaged = 0
        self.cut = False

    def events(self) -> Iterator[LoggedEvent]:
        """Yield the events in the order of the file. Reading ends at a damaged length."""
        with open(self._path, "rb") as file:
            for payload in self._records(file):
                try:
                    event = read_event(payload)
                except (Malformed, struct.error, ValueError):
                    self.damaged += 1
                    continue
                if event is not None:
                    yield event

    def _records(self, file: BinaryIO) -> Iterator[bytes]:
        while head := file.read(_HEAD.size):
            if len(head) < _HEAD.size:
                self.cut = True
                return
            length, check = _HEAD.unpack(head)
            if masked_sum(head[:8]) != check or length > _MAX_BYTES:
                self.damaged += 1
                return
            payload, tail = file.read(length), file.read(_SUM.size)
            if len(payload) < length or len(tail) < _SUM.size:
                self.cut = True
                return
            if masked_sum(payload) == _SUM.unpack(tail)[0]:
                yield payload
            else:
                self.damaged += 1


def check_readable(path: str) -> None:
    """Raise ValueError if a file is damaged, or ends in the middle of a record."""
    file = EventFile(path)
    for _ in file.events():
        pass
    if file.damaged or file.cut:
        raise ValueError(f"{path} is damaged, and has no values that can be read")


def read_event(payload: bytes) -> LoggedEvent | None:
    """Return the event in a message; None if it has neither values nor the beginning of a writer.

    Raises:
        Malformed, ValueError: invalid message.
    """
    message = _message(payload)
    is_start = 7 in message and _integer(_message(message[7][-1]), 1) == _SESSION_START
    begins = 3 in message or is_start
    if 5 not in message and not begins:
        return None
    time_s, step = _double(message, 1), to_signed(_integer(message, 2))
    event = LoggedEvent(round(time_s * 1000), step, begins, step if is_start else None)
    for value in _message(message[5][-1]).get(1, ()) if 5 in message else ():
        _read_value(_message(value), event)
    return event


def _read_value(value: Fields, event: LoggedEvent) -> None:
    tag = _text(value, 1)
    plugin = _message(_content(_message(value[9][-1]), 1)) if 9 in value else {}
    name = _text(plugin, 1)
    if 2 in value:
        event.values.append(EventValue(tag, "number", struct.unpack("<f", _content(value, 2))[0]))
    elif 4 in value:
        event.values.append(EventValue(tag, "image", _contents(_message(value[4][-1]), 4)))
    elif 6 in value:
        event.values.append(EventValue(tag, "audio", _contents(_message(value[6][-1]), 4)))
    elif 5 in value:
        event.values.append(EventValue(tag, "histogram", _old_histogram(_message(value[5][-1]))))
    elif name == "hparams":
        _read_hparams(_message(plugin[2][-1]) if 2 in plugin else {}, event)
    elif 8 in value:
        _read_tensor(tag, name, _message(value[8][-1]), event)


def _read_tensor(tag: str, plugin: str, tensor: Fields, event: LoggedEvent) -> None:
    if plugin == "text":
        texts = [text.decode("utf-8", "replace") for text in _contents(tensor, 8)]
        event.values.append(EventValue(tag, "text", "\n\n".join(texts)))
    elif plugin == "images":  # width, height, then the pictures
        event.values.append(EventValue(tag, "image", _contents(tensor, 8)[2:]))
    elif plugin == "audio":  # pairs of a sound and its label
        event.values.append(EventValue(tag, "audio", _contents(tensor, 8)[::2]))
    elif plugin == "histograms":
        bars = _numbers(tensor)
        counts = [bars[at + 2] for at in range(0, len(bars) - 2, 3)]
        edges = [*(bars[at] for at in range(0, len(bars) - 2, 3)), *(bars[-2:-1])]
        event.values.append(EventValue(tag, "histogram", (counts, edges)))
    elif plugin in ("scalars", ""):
        numbers = _numbers(tensor)
        if len(numbers) == 1:
            event.values.append(EventValue(tag, "number", numbers[0]))
        else:
            event.unknown.append("tensors")
    else:
        event.unknown.append(plugin)


def _old_histogram(message: Fields) -> tuple[list[float], list[float]]:
    """Return counts and edges of a histogram as PyTorch writes it.

    It has right edges, of which the last may be the largest number.
    """
    limits, counts = _doubles(message, 6), _doubles(message, 7)
    low, high = _double(message, 1), _double(message, 2)
    used = [number for number, count in enumerate(counts) if count]
    if not used or len(limits) != len(counts):
        return [], []
    first, last = used[0], used[-1]
    edges = [low, *(max(low, min(edge, high)) for edge in limits[first : last + 1])]
    return counts[first : last + 1], edges


def _read_hparams(plugin: Fields, event: LoggedEvent) -> None:
    for start in plugin.get(3, ()):
        for entry in _message(start).get(1, ()):
            pair = _message(entry)
            event.config[_text(pair, 1)] = _value(_message(pair[2][-1]) if 2 in pair else {})
    for end in plugin.get(4, ()):
        event.status = _integer(_message(end), 1)


def _value(value: Fields) -> Any:
    """Return a `google.protobuf.Value`."""
    if 2 in value:
        number = _double(value, 2)
        return int(number) if number.is_integer() and abs(number) < 1 << 53 else number
    if 4 in value:
        return bool(value[4][-1])
    return _text(value, 3) if 3 in value else None


def _numbers(tensor: Fields) -> list[float]:
    """Return the numbers of a tensor of floats or doubles; empty for other types."""
    dtype, content = _integer(tensor, 1), _content(tensor, 4)
    if dtype == _DT_DOUBLE:
        return read_doubles(content) if content else _doubles(tensor, 6)
    if dtype == _DT_FLOAT:
        packed = content or b"".join(_contents(tensor, 5))
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    return []


def _doubles(message: Fields, number: int) -> list[float]:
    """Packed doubles, or single ones: both are 8 bytes each."""
    return read_doubles(b"".join(_contents(message, number)))


def _double(message: Fields, number: int) -> float:
    return read_double(_content(message, number)) if number in message else 0.0


def _message(data: bytes) -> Fields:
    message: Fields = {}
    if not isinstance(data, bytes):
        raise Malformed("a number instead of a message")
    for number, _, value in fields(data):
        message.setdefault(number, []).append(value)
    return message


def _contents(message: Fields, number: int) -> list[bytes]:
    """Return the values of a field of bytes; raise Malformed if one is a number."""
    values = message.get(number, [])
    if not all(isinstance(value, bytes) for value in values):
        raise Malformed(f"a number in field {number}")
    return values


def _content(message: Fields, number: int) -> bytes:
    """Return the last value of a field of bytes; none for one that is missing."""
    return (_contents(message, number) or [b""])[-1]


def _integer(message: Fields, number: int) -> int:
    """Return the last value of a field of numbers, 0 for one that is missing; raise Malformed for bytes."""
    value = message.get(number, [0])[-1]
    if not isinstance(value, int):
        raise Malformed(f"no number in field {number}")
    return value


def _text(message: Fields, number: int) -> str:
    value = message.get(number, [b""])[-1]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
