"""Records that our writers never write, but others may: fields of any type, extreme numbers and texts."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from runvitals.model import records

kinds = [records.START, records.HISTORY, records.EVENT, records.LIFECYCLE, records.INFO]
T0 = 1_760_000_000_000

texts = st.text(st.characters(exclude_categories=()), max_size=6) | st.sampled_from(
    ["", "_step", "_time", "\ud800", "\0", "n" * 600, "\x1b[2J", "{", "%s", "__proto__", "gpu.0.temp"]
)
integers = st.integers() | st.sampled_from([0, -1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 10**400])
floats = st.floats() | st.sampled_from([math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324])
scalars = st.none() | st.booleans() | integers | floats | texts


def _nested(depth: int) -> Any:
    value: Any = 1
    for i in range(depth):
        value = [value] if i % 2 else {"a": value}
    return value


values = st.recursive(
    scalars | st.sampled_from([_nested(120), _nested(300)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
times = st.sampled_from([T0, T0 + 1, T0 + 60_000, 0, 1, 253_370_764_799_999]) | integers | floats | st.none()
names = st.sampled_from(["records_lost", "alert", "gap", "marker", "end", "attach", "finish", "exit"]) | texts
known: dict[str, st.SearchStrategy[Any]] = {
    "t": st.just(T0) | times,
    "what": names,
    "name": names,
    "state": st.sampled_from(["finished", "crashed", "running", "lost"]) | values,
    "data": st.dictionaries(texts, values, max_size=4) | values,
    "step": st.sampled_from([0, 1, 2, 3]) | values,
    "since": times,
    **{
        name: st.sampled_from([1, 2, 4711]) | values
        for name in ("pid", "rank", "local_rank", "world_size", "exit_code", "signal", "count", "interval_s")
    },
    **{
        name: st.sampled_from(["monitor", "train", "node1", "abc"]) | values
        for name in ("host", "role", "project", "run", "writer", "level", "text", "boot_id", "title")
    },
    **{
        name: st.dictionaries(texts, values, max_size=3) | values
        for name in ("labels", "config", "summary", "machine", "settings", "sources", "baselines")
    },
    "out_of_memory": st.booleans() | values,
}
"""Every field of any record, with valid and invalid values."""

about_run = st.fixed_dictionaries(
    {},
    optional={
        name: st.just("a") | values
        for name in ("name", "project", "group", "job_type", "tags", "notes", "command")
    },
)
objects = st.fixed_dictionaries({}, optional=known) | st.fixed_dictionaries(
    {"t": st.just(T0), "run": about_run}, optional={"machine": known["machine"], "extra": values}
)
