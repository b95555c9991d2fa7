"""Encodes the messages of an event file.

`tensorboard.Event`, and the summaries of the scalars, text and hparams plugins.

https://github.com/tensorflow/tensorboard/tree/master/tensorboard/compat/proto (event, summary, tensor)
https://github.com/tensorflow/tensorboard/blob/master/tensorboard/plugins/hparams/plugin_data.proto
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Mapping
from functools import lru_cache

from runvitals.base.protobuf import double, single, text, uint

VERSION = "brain.Event:2"
_DT_FLOAT, _DT_STRING = 1, 7
_DATA_CLASS_SCALAR = 1
_FLOAT = struct.Struct("<f")
_STATUS = {"finished": 1, "failed": 2, "crashed": 2, "lost": 2, "stopped": 2}


def _event(time_ms: int, step: int, content: bytes) -> bytes:
    return double(1, time_ms / 1000) + uint(2, step) + content


def head(time_ms: int) -> bytes:
    """Return the first message of every file."""
    return _event(time_ms, 0, text(3, VERSION))


def scalars(time_ms: int, step: int, values: Iterable[tuple[str, float, str]]) -> bytes:
    """Encode several numbers of one time.

    Args:
        time_ms: UTC.
        step: the value on the horizontal axis.
        values: (tag, value, description in Markdown, or ""). TensorBoard keeps the first description of a
            tag. The format stores values as float32.
    """
    summary = b"".join(
        _description(tag, value, about) if about else _head(tag) + _float(value)
        for tag, value, about in values
    )
    return _event(time_ms, step, text(5, summary))


@lru_cache(16_384)
def _head(tag: str) -> bytes:
    """Return a value without its last four bytes, the number; the rest is the same each time."""
    value = text(1, text(1, tag) + single(2, 0.0))
    return value[:-4]


def _float(value: float) -> bytes:
    try:
        return _FLOAT.pack(value)
    except OverflowError:
        return single(2, value)[-4:]


def _description(tag: str, value: float, about: str) -> bytes:
    metadata = text(1, text(1, "scalars")) + text(3, about) + uint(4, _DATA_CLASS_SCALAR)
    return text(1, text(1, tag) + single(2, value) + text(9, metadata))


def words(time_ms: int, step: int, tag: str, markdown: str) -> bytes:
    """Encode a text for the text plugin."""
    tensor = uint(1, _DT_STRING) + text(2, text(2, uint(1, 1))) + text(8, markdown)
    value = text(1, tag) + text(9, text(1, text(1, "text"))) + text(8, tensor)
    return _event(time_ms, step, text(5, text(1, value)))


def session_start(time_ms: int, group: str, hparams: Mapping[str, object]) -> bytes:
    """Encode hyperparameters: numbers, bools and strings unchanged, anything else as a string."""
    entries = b"".join(text(1, text(1, key) + text(2, _value(value))) for key, value in hparams.items())
    info = entries + text(4, group) + double(5, time_ms / 1000)
    return _hparams(time_ms, "_hparams_/session_start_info", text(3, info))


def session_end(time_ms: int, state: str) -> bytes:
    """Encode the end of a run, with its runvitals state."""
    info = uint(1, _STATUS.get(state, 0)) + double(2, time_ms / 1000)
    return _hparams(time_ms, "_hparams_/session_end_info", text(4, info))


def _hparams(time_ms: int, tag: str, data: bytes) -> bytes:
    # Plugin data are stored in the metadata of a value, which requires a tensor.
    tensor = uint(1, _DT_FLOAT) + text(2, text(2, uint(1, 1))) + text(5, b"\0\0\0\0")
    value = text(1, tag) + text(9, text(1, text(1, "hparams") + text(2, data))) + text(8, tensor)
    return _event(time_ms, 0, text(5, text(1, value)))


def _value(value: object) -> bytes:
    """Return a `google.protobuf.Value`."""
    if isinstance(value, bool):
        return uint(4, value)
    if isinstance(value, int | float) and abs(value) < 1e308:
        return double(2, float(value))
    return text(3, str(value))


def seconds(time_ms: int, since_ms: int) -> int:
    """Return the step of values without one: whole seconds since the run started."""
    return max(0, (time_ms - since_ms) // 1000)


def escape(value: object) -> str:
    """Escape a value for TensorBoard's Markdown: as inline code on one line."""
    line = " ".join(str(value).split()).replace("`", "'").replace("|", "\\|")
    return f"`{line}`" if line else ""


def table(values: Mapping[str, object]) -> str:
    """Return a Markdown table of names and values."""
    rows = "".join(f"| {escape(key)} | {escape(value)} |\n" for key, value in values.items())
    return f"| name | value |\n|---|---|\n{rows}"


def utc(time_ms: int) -> str:
    """Return a time in UTC to the second, for people."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time_ms / 1000))
