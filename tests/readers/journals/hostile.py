"""Journals of valid frames with correct checksums and arbitrary content."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from runvitals.base.json_codec import dumps
from runvitals.journal import frames
from runvitals.journal.frames import frame
from runvitals.journal.paths import run_dir
from runvitals.journal.records import CONSOLE_HEAD
from tests.model.hostile import T0, objects, texts, values

Payload = tuple[int, bytes]
JSON_TYPES = [frames.START, frames.HISTORY, frames.EVENT, frames.LIFECYCLE, frames.INFO]


def json_payload(type: int, value: Any) -> Payload:
    return type, dumps(value)


def sample_payload(schema_id: int, time_ms: int, row: list[float]) -> Payload:
    return frames.SAMPLE, struct.pack(f"<IIq{len(row)}d", schema_id, 0, time_ms, *row)


int64 = st.sampled_from([T0, T0 + 1000, T0 + 2000, 0, -1, 2**63 - 1, -(2**63)])
numbers = st.floats() | st.sampled_from([1e308, -1e308, 0.0, 1.0])
schemas = st.fixed_dictionaries(
    {"id": st.sampled_from([0, 1]) | values, "keys": st.lists(texts, max_size=3) | values}
)
any_payload = (
    st.builds(json_payload, st.sampled_from(JSON_TYPES), objects | values)
    | st.builds(lambda value: json_payload(frames.SCHEMA, value), schemas | values)
    | st.builds(sample_payload, st.sampled_from([0, 1, 7]), int64, st.lists(numbers, max_size=3))
    | st.builds(
        lambda stream, t, text: (frames.CONSOLE, CONSOLE_HEAD.pack(stream, t) + text),
        st.integers(0, 3),
        int64,
        st.binary(max_size=5),
    )
    | st.tuples(st.integers(0, 255), st.binary(max_size=30))
)
writers = st.sampled_from(
    ["monitor.node1.199c7f9d400", "train.node1.4711.199c7f9d400", "x", "monitor.node1.zz"]
)
journals = st.dictionaries(writers, st.lists(any_payload, max_size=12), min_size=1, max_size=3)
steps = st.sampled_from([1, 1, 1, 1, 2, 0, 2**63, 2**64 - 10])


def plant(directory: Path, run_id: str, journal: dict[str, list[Payload]], number_step: int = 1) -> None:
    folder = Path(run_dir(run_id, str(directory)))
    folder.mkdir(parents=True)
    for writer, payloads in journal.items():
        start = json_payload(frames.START, {"t": T0, "host": "node1", "role": writer.partition(".")[0]})
        data = b"".join(
            frame(type, min(index * number_step, 2**64 - 1), payload)
            for index, (type, payload) in enumerate([start, *payloads])
        )
        (folder / f"{writer}.00000.rvj").write_bytes(data)
