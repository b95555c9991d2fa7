"""Decodes the records of a `.wandb` file.

They are messages of type `wandb_internal.Record` with a run's metrics, rows, output, definitions of metrics
and end. Other messages are ignored. The field numbers are the same in W&B 0.16 to 0.31.

https://github.com/wandb/wandb/blob/main/wandb/proto/wandb_internal.proto
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from runvitals.base.protobuf import Malformed, fields, read_double, to_signed, unzigzag

_KEY_TAG = 0x0A
_JSON_TAG = b"\x82\x01"
_decode_json = json.JSONDecoder().raw_decode
Message = Mapping[int, list[int | bytes]]


@dataclass(frozen=True, slots=True)
class RunStart:
    """The run: its names, host, start and configuration."""

    run: str
    entity: str
    project: str
    name: str
    group: str
    job_type: str
    notes: str
    host: str
    tags: tuple[str, ...]
    started_ms: int
    config: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EntriesChange:
    """Entries of the configuration or the summary that were set or removed."""

    of: str  # "config" or "summary"
    update: dict[str, Any]
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatsSample:
    """A sample of the system metrics, under W&B's names."""

    time_ms: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A row of `wandb.log()`; `data` includes `_timestamp`, `_runtime` and `_step`."""

    step: int | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConsoleOutput:
    """A piece of console output, of stderr if `error`."""

    time_ms: int
    error: bool
    text: str


@dataclass(frozen=True, slots=True)
class WandbAlert:
    """`wandb.alert()`."""

    title: str
    text: str
    level: str


@dataclass(frozen=True, slots=True)
class MachineInfo:
    """Facts about the machine: those that are strings or numbers."""

    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WandbMetric:
    """The options from `define_metric` of a metric, or of those that match a pattern.

    The fields are as in the section `metrics` of a journal.
    """

    name: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunExit:
    """The end of the run: the exit code, and the duration in seconds."""

    exit_code: int
    runtime_s: int


Record = (
    RunStart
    | EntriesChange
    | StatsSample
    | HistoryRow
    | ConsoleOutput
    | WandbAlert
    | MachineInfo
    | WandbMetric
    | RunExit
)


def decode(payload: bytes, readers: Mapping[int, Callable[[bytes], Record]] | None = None) -> Record | None:
    """Decode a payload; None for a type of record that is not imported.

    Args:
        readers: of the types that are wanted; None: all, others `END_READERS`.

    Raises:
        Malformed: invalid record.
    """
    by_type = _READERS if readers is None else readers
    for number, _, value in fields(payload):
        reader = by_type.get(number)
        if reader is not None and isinstance(value, bytes):
            return reader(value)
    return None


def _message(data: bytes) -> Message:
    message: dict[int, list[int | bytes]] = {}
    for number, _, value in fields(data):
        message.setdefault(number, []).append(value)
    return message


def _texts(message: Message, number: int) -> tuple[str, ...]:
    return tuple(v.decode("utf-8", "replace") for v in message.get(number, ()) if isinstance(v, bytes))


def _text(message: Message, number: int) -> str:
    return (_texts(message, number) or ("",))[-1]


def _int(message: Message, number: int) -> int:
    values = [to_signed(v) for v in message.get(number, ()) if isinstance(v, int)]
    return values[-1] if values else 0


def _messages(message: Message, number: int) -> list[Message]:
    return [_message(v) for v in message.get(number, ()) if isinstance(v, bytes)]


def _time_ms(message: Message, number: int) -> int:
    """Return a `google.protobuf.Timestamp` in ms UTC; 0 if it is missing."""
    times = _messages(message, number)
    return _int(times[-1], 1) * 1000 + _int(times[-1], 2) // 1_000_000 if times else 0


def _items(message: Message, number: int) -> dict[str, Any]:
    """Entries of a configuration, a summary or a row. Each has a key or a path, and JSON or a typed value."""
    values = {}
    for data in message.get(number, ()):
        if isinstance(data, bytes):
            key, value = _short_item(data) or _item(data)
            values[key] = value
    return values


def _item(data: bytes) -> tuple[str, Any]:
    item = _message(data)
    return _text(item, 1) or ".".join(_texts(item, 2)), _read_value(item)


def _short_item(data: bytes) -> tuple[str, Any] | None:
    """Read an entry with a key and JSON that are both short, as nearly all are.

    This is 8 times as fast as `_item`. None for another, also for an invalid one.
    """
    if len(data) < 2 or data[0] != _KEY_TAG or not 0 < data[1] < 0x80:
        return None
    key_end = 2 + data[1]
    start = key_end + len(_JSON_TAG) + 1
    if len(data) < start or data[key_end : start - 1] != _JSON_TAG or data[start - 1] != len(data) - start:
        return None
    try:
        text = data[start:].decode()
        value, end = _decode_json(text)
        return (data[2:key_end].decode(), value) if end == len(text) else None
    except ValueError:
        return None


def _read_value(item: Message) -> Any:
    if 16 in item or 8 in item:
        text = _text(item, 16) or _text(item, 8)
        try:
            return json.loads(text)
        except ValueError as error:
            raise Malformed(f"invalid JSON value: {text[:80]!r}") from error
    if 4 in item:
        return bool(_int(item, 4))
    if 5 in item:
        return unzigzag(int(item[5][-1]))
    if 6 in item:
        number = item[6][-1]
        return read_double(number) if isinstance(number, bytes) and len(number) == 8 else None
    return _text(item, 7) if 7 in item else None


def _read_start(data: bytes) -> RunStart:
    message = _message(data)
    config: dict[str, Any] = {}
    for entries in _messages(message, 4):
        config |= _items(entries, 1)
    return RunStart(
        run=_text(message, 1),
        entity=_text(message, 2),
        project=_text(message, 3),
        name=_text(message, 8),
        group=_text(message, 6),
        job_type=_text(message, 7),
        notes=_text(message, 9),
        host=_text(message, 13),
        tags=_texts(message, 10),
        started_ms=_time_ms(message, 17),
        config=config,
    )


def _change_reader(of: str) -> Callable[[bytes], EntriesChange]:
    def read(data: bytes) -> EntriesChange:
        message = _message(data)
        removed = tuple(_items(message, 2))
        return EntriesChange(of, _items(message, 1), removed)

    return read


def _stats(data: bytes) -> StatsSample:
    message = _message(data)
    values = {}
    for key, value in _items(message, 3).items():
        if isinstance(value, int | float):
            values[key] = float(value)
    return StatsSample(_time_ms(message, 2), values)


def _history(data: bytes) -> HistoryRow:
    message = _message(data)
    row = _items(message, 1)
    steps = _messages(message, 2)
    step = row.get("_step", _int(steps[-1], 1) if steps else None)
    return HistoryRow(step if isinstance(step, int) else None, row)


def _output(data: bytes) -> ConsoleOutput:
    message = _message(data)
    return ConsoleOutput(_time_ms(message, 2), _int(message, 1) == 0, _text(message, 3))


def _alert(data: bytes) -> WandbAlert:
    message = _message(data)
    return WandbAlert(_text(message, 1), _text(message, 2), _text(message, 3))


_SUMMARY_KINDS = {1: "min", 2: "max", 3: "mean", 5: "last", 6: "none", 7: "last"}
_GOALS = {1: "minimize", 2: "maximize"}
_INTERNAL = frozenset({"_step", "_runtime", "_timestamp"})


def _read_definition(data: bytes) -> WandbMetric:
    message = _message(data)
    definition: dict[str, Any] = {}
    for summary in _messages(message, 7):
        chosen = [kind for number, kind in _SUMMARY_KINDS.items() if _int(summary, number)]
        definition |= {"summary": chosen[0]} if chosen else {}
    x = _text(message, 4)
    if x and x not in _INTERNAL:
        definition["x"] = x
    if any(_int(options, 2) for options in _messages(message, 6)):
        definition["hidden"] = True
    goal = _GOALS.get(_int(message, 8))
    if goal is not None:
        definition["goal"] = goal
    return WandbMetric(_text(message, 1) or _text(message, 2), definition)


_ENVIRONMENT_TEXTS = {
    1: "os", 2: "python", 4: "docker", 6: "program", 7: "code_path", 11: "root", 12: "host", 14: "executable",
    18: "gpu", 25: "cuda_version",
}  # fmt: skip
_ENVIRONMENT_NUMBERS = {16: "cpu_count", 17: "cpu_count_logical", 19: "gpu_count"}


def _environment(data: bytes) -> MachineInfo:
    message = _message(data)
    facts: dict[str, Any] = {
        name: _text(message, n) for n, name in _ENVIRONMENT_TEXTS.items() if n in message
    }
    facts |= {name: _int(message, n) for n, name in _ENVIRONMENT_NUMBERS.items() if n in message}
    if 5 in message:
        facts["args"] = list(_texts(message, 5))
    for git in _messages(message, 9):
        facts["git"] = {"remote": _text(git, 1), "commit": _text(git, 2)}
    return MachineInfo(facts)


def _exit(data: bytes) -> RunExit:
    message = _message(data)
    return RunExit(_int(message, 1), _int(message, 2))


_READERS: dict[int, Callable[[bytes], Record]] = {
    2: _history,
    3: _change_reader("summary"),
    4: _output,
    5: _change_reader("config"),
    7: _stats,
    10: _alert,
    12: _read_definition,
    13: _output,
    17: _read_start,
    18: _exit,
    26: _environment,
}
END_READERS: Mapping[int, Callable[[bytes], Record]] = {3: _change_reader("summary"), 7: _stats, 18: _exit}
"""Readers for the end of a file, as far as a list shows it: samples, the summary, and the exit."""
