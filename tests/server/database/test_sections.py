"""Sections are merged key by key, and the latest value of a key wins."""

from __future__ import annotations

import itertools
import json
import math
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runvitals.model.errors import UnknownRun
from runvitals.model.filter import Filter
from runvitals.model.run_sort import RunSort
from runvitals.readers.journals.run_builder import MergedSection
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.sections import SectionUpdate
from tests.server.database.runs import T0, joined, made, uids, where


def read(metadata_store: MetadataStore, run_id: int, section: str) -> dict[str, Any]:
    return metadata_store.sections.read([run_id])[run_id].shared.get(section, {})


def test_later_keys_win_in_any_order_of_arrival(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    for time_ms, values in ((3, {"a": 3}), (1, {"a": 1, "b": 1}), (2, {"b": 2, "c": 2}), (3, {"a": "tie"})):
        metadata_store.sections.merge([SectionUpdate(run_id, "config", values, time_ms)])
    assert read(metadata_store, run_id, "config") == {"a": "tie", "b": 2, "c": 2}


EXAMPLES = itertools.count()
RECORD = st.tuples(st.integers(-3, 3), st.dictionaries(st.sampled_from("abcd"), st.integers()))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(RECORD, max_size=8), together=st.booleans())
def test_same_sections_as_journal_readers(
    metadata_store: MetadataStore, said: list[tuple[int, dict[str, int]]], together: bool
) -> None:
    merged = MergedSection()
    run_id = joined(metadata_store, f"run-{next(EXAMPLES)}").run_id
    updates = [SectionUpdate(run_id, "summary", values, time_ms) for time_ms, values in said]
    for time_ms, values in said:
        merged.update(values, time_ms)
    for group in [updates] if together else [[update] for update in updates]:
        metadata_store.sections.merge(group)
    shared = metadata_store.sections.read([run_id])[run_id].shared
    assert shared.get("summary", {}) == merged.values


def test_machine_sections_are_kept_by_host(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    facts: list[tuple[str, dict[str, Any]]] = [
        ("node1", {"cpus": 8}),
        ("node2", {"cpus": 16}),
        ("node1", {"os": "Debian"}),
    ]
    metadata_store.sections.merge(
        [SectionUpdate(run_id, "machine", values, T0, host) for host, values in facts]
    )
    metadata_store.sections.merge([SectionUpdate(run_id, "settings", {"interval_s": 1}, T0, host="ignored")])
    sections = metadata_store.sections.read([run_id])[run_id]
    assert sections.by_host == {"machine": {"node1": {"cpus": 8, "os": "Debian"}, "node2": {"cpus": 16}}}
    assert sections.shared == {"settings": {"interval_s": 1}}
    assert metadata_store.sections.read([run_id], ["settings"])[run_id].by_host == {}


HARD = {
    "emoji": "📉 ünï",
    "nul": "a\0b",
    "half of a pair": "\ud83d",
    "quotes": "'\"\\",
    "lines": "a\r\nb\u2028",
    "deep": {"a": [{"b": [1, None, True]}]},
    "": "no name",
    "nul\0name": 1,
    "big": 10**400,
    "small": 5e-324,
    "negative zero": -0.0,
    "infinite": [math.inf, -math.inf],
    "%_": "%_",
}


def test_any_text_is_returned_unchanged(metadata_store: MetadataStore) -> None:
    about = {"name": "a\0b", "notes": "\ud83d"}
    run_id = made(metadata_store, "abc", config=HARD, summary={"loss": math.nan}, run=about)
    assert read(metadata_store, run_id, "config") == HARD
    assert math.copysign(1, read(metadata_store, run_id, "config")["negative zero"]) == -1
    assert math.isnan(read(metadata_store, run_id, "summary")["loss"])
    assert read(metadata_store, run_id, "run") == about
    [run] = metadata_store.runs.page(Filter(text="ünï"), RunSort(), T0).runs
    assert run.name == "a␀b"


TEXT = st.text(st.characters(), max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.dictionaries(TEXT, JSON, max_size=6))
def test_any_json_is_returned_unchanged(metadata_store: MetadataStore, values: dict[str, Any]) -> None:
    run_id = made(metadata_store, f"json-{next(EXAMPLES)}", config=values)
    assert json.dumps(read(metadata_store, run_id, "config")) == json.dumps(values)


def test_configuration_of_a_megabyte(metadata_store: MetadataStore) -> None:
    text = "".join(random.Random(1).choices("abcdefgh 📉", k=200_000))
    config = {"prompt": text, "table": list(range(60_000)), **{f"key{n}": n for n in range(5000)}}
    run_id = made(metadata_store, "abc", config=config)
    assert read(metadata_store, run_id, "config") == config
    assert uids(metadata_store, where("config.key17 = 17")) == ["abc"]
    assert uids(metadata_store, Filter(text=text[:100].split()[0])) == ["abc"]
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"prompt": "short"}, T0 + 1)])
    assert read(metadata_store, run_id, "config") == {**config, "prompt": "short"}


def test_numpy_numbers_become_plain_numbers(metadata_store: MetadataStore) -> None:
    np = pytest.importorskip("numpy")
    run_id = made(metadata_store, "abc", summary={"loss": np.float32(0.5), "shape": (1, 2)})
    assert read(metadata_store, run_id, "summary") == {"loss": 0.5, "shape": [1, 2]}


def test_invalid_sections(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    endless: dict[str, Any] = {}
    endless["itself"] = endless
    wrong = [
        (SectionUpdate(run_id, "config", [1], T0), "expected a JSON object, not list"),  # type: ignore[arg-type]
        (SectionUpdate(run_id, "config", {(1, 2): 3}, T0), "is not a JSON object"),  # type: ignore[dict-item]
        (SectionUpdate(run_id, "config", endless, T0), "nested too deeply, or contains itself"),
        (SectionUpdate(run_id, "", {}, T0), "section ''"),
        (SectionUpdate(run_id, "machine", {}, T0), "host ''"),
        (SectionUpdate(run_id, "config", {}, 2**63), "time_ms 9223372036854775808"),
    ]
    for update, message in wrong:
        with pytest.raises(ValueError, match=message):
            metadata_store.sections.merge([SectionUpdate(run_id, "config", {"fine": 1}, T0), update])
    with pytest.raises(UnknownRun, match="no run with id 4711"):
        metadata_store.sections.merge(
            [SectionUpdate(run_id, "config", {"fine": 1}, T0), SectionUpdate(4711, "config", {}, T0)]
        )
    assert metadata_store.sections.read([run_id])[run_id].shared == {}
    metadata_store.sections.merge([])


def test_concurrent_writers_of_one_section(metadata_store: MetadataStore) -> None:
    """Each has the last word on its own key, and one of them on the key of all."""
    run_id = joined(metadata_store, "abc").run_id

    def say(number: int) -> None:
        for step in range(5):
            values = {f"metric{number}": step, "step": step * 10 + number}
            metadata_store.sections.merge([SectionUpdate(run_id, "summary", values, T0 + step * 10 + number)])

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(say, range(6)))
    assert read(metadata_store, run_id, "summary") == {**{f"metric{n}": 4 for n in range(6)}, "step": 45}
    assert uids(metadata_store, where("summary.step = 45", "summary.metric3 = 4")) == ["abc"]


def test_concurrent_writers_of_many_runs(metadata_store: MetadataStore) -> None:
    """Two that touch the same runs, fields and projects in opposite orders both get through."""
    run_ids = [joined(metadata_store, f"run{n}").run_id for n in range(4)]

    def say(number: int) -> None:
        order = run_ids if number % 2 else run_ids[::-1]
        for step in range(4):
            values = {f"field{number % 3}-{step}": step}
            updates = [SectionUpdate(run_id, "config", values, T0) for run_id in order]
            updates += [
                SectionUpdate(run_id, "run", {"project": f"p{step}-{number % 2}"}, T0 + step)
                for run_id in order
            ]
            metadata_store.sections.merge(updates)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(say, range(6)))
    for run_id in run_ids:
        assert len(read(metadata_store, run_id, "config")) == 12
    assert sum(project.runs for project in metadata_store.projects.all(T0)) == 4
