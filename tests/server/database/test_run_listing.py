"""Lists of runs: filters, order and pages."""

from __future__ import annotations

import base64
import itertools
import json
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runvitals.model.ending import Ending
from runvitals.model.filter import Filter, Predicate
from runvitals.model.run_sort import SORTED_COLUMNS, RunSort
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage import filter_sql
from runvitals.server.runs.storage.run_rows import RunPage
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.server.database.runs import EVERYTHING, T0, joined, made, uids, where

CONFIGS: dict[str, dict[str, Any]] = {
    "a": {"lr": 0.1, "opt": {"name": "adam"}, "layers": [64, 32], "mixed": 3, "amp": True},
    "b": {"lr": 0.01, "opt": {"name": "sgd"}, "mixed": "three", "amp": False},
    "c": {"lr": 1, "opt": {"name": "Adam"}, "mixed": math.nan, "seed": 10**400},
    "d": {"lr": math.inf, "mixed": None, "note": "x" * 300},
    "e": {"mixed": -1.5, "lr": "0.1", "opt": "adam"},
    "f": {},
}


def fill(metadata_store: MetadataStore) -> None:
    for index, (uid, config) in enumerate(CONFIGS.items()):
        made(metadata_store, uid, started_ms=T0 + 1000 * index, config=config)


@pytest.fixture(scope="module")
def six(shared_store: MetadataStore) -> MetadataStore:
    """Runs with the configurations above, each started a second after the one before."""
    fill(shared_store)
    return shared_store


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        (["config.lr > 0.01"], "acd"),
        (["config.lr >= 0.01"], "abcd"),
        (["config.lr = 0.1"], "a"),
        (["config.lr == 1"], "c"),
        (["config.lr != 0.1"], "bcd"),
        (["config.lr < 1", "config.opt.name = adam"], "a"),
        (['config.lr = "0.1"'], "e"),
        (["config.opt.name = adam"], "a"),
        (["config.opt.name >= b"], "b"),
        (["config.opt = adam"], "e"),
        (["config.amp = true"], "a"),
        (["config.amp != true"], "b"),
        (["config.mixed = NaN"], "c"),
        (["config.mixed < 3"], "e"),
        (["config.layers = [64,32]"], "a"),
        ([f"config.note = {'x' * 300}"], "d"),
        (["config.unheard.of = 1"], ""),
        (["config.lr > 0.01", "config.lr < 0.5"], "a"),
        (["name = c"], "c"),
        (["id > d"], "ef"),
        ([f"started_ms >= {T0 + 4000}"], "ef"),
        (["duration_ms = 0"], "abcdef"),
        (["exit_code = 0"], ""),
    ],
)
def test_predicates(six: MetadataStore, predicates: list[str], expected: str, few: None) -> None:
    assert "".join(sorted(uids(six, where(*predicates)))) == expected
    assert six.runs.count(where(*predicates), T0) == len(expected)
    assert len(six.runs.ids(where(*predicates), T0)) == len(expected)


@pytest.fixture(params=["listed", "gone through"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of finding runs, for any number of them."""
    limit = 10_000 if request.param == "listed" else 0
    monkeypatch.setattr(filter_sql, "COUNTED", limit)


@pytest.mark.parametrize(
    ("by", "ascending", "descending"),
    [
        ("started_ms", "abcdef", "fedcba"),
        ("id", "abcdef", "fedcba"),
        ("config.lr", "bacdef", "dcabef"),  # numbers, then texts, then what has none, newest first
        ("config.mixed", "eacbfd", "aebcfd"),
        ("config.opt.name", "cabfed", "bacfed"),
        ("config.unheard.of", "fedcba", "fedcba"),
    ],
)
@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_orders(six: MetadataStore, by: str, ascending: str, descending: str, limit: int, few: None) -> None:
    assert "".join(uids(six, EVERYTHING, by, False, limit)) == ascending
    assert "".join(uids(six, EVERYTHING, by, True, limit)) == descending
    assert "".join(uids(six, Filter(project="digits"), by, False, limit)) == ascending
    assert "".join(uids(six, where("id != c"), by, False, limit)) == ascending.replace("c", "")


def test_searches(metadata_store: MetadataStore, few: None) -> None:
    made(
        metadata_store, "brave-otter-1", run={"name": "Größe 100%", "notes": 'it\'s the "best_run" so far 📉'}
    )
    made(
        metadata_store,
        "calm-heron-2",
        run={"tags": ["Paper"], "group": "sweep-7"},
        config={"opt": {"name": "AdamW"}},
    )
    made(metadata_store, "x", config={"batch": 64, "lr": 1e-5, "data": "/data/sets/imagenet", "flag": True})
    find: Callable[[str], str] = lambda text: " ".join(sorted(uids(metadata_store, Filter(text=text))))  # noqa: E731
    everything = "brave-otter-1 calm-heron-2 x"
    for text, expected in {
        "": everything,
        "  \n ": everything,
        "otter": "brave-otter-1",
        "OTTER": "brave-otter-1",
        "er": "brave-otter-1 calm-heron-2",
        "2": "calm-heron-2",
        "x": "x",  # the last letter of a text too
        "größe": "brave-otter-1",
        "GRÖSSE": "brave-otter-1",
        "0%": "brave-otter-1",
        "100%": "brave-otter-1",
        "1_0": "",
        "best_run": "brave-otter-1",
        "bestXrun": "",
        '"best': "brave-otter-1",
        "it's": "brave-otter-1",
        "📉": "brave-otter-1",
        "adamw": "calm-heron-2",
        "adam heron paper": "calm-heron-2",
        "adam otter": "",
        "sweep-7": "calm-heron-2",
        "64": "x",
        "64.0": "",
        "1e-05": "x",
        "/data/sets/imagenet": "x",
        "/data/sets/imagenets": "",
        "adamresnet": "",
        "true": "x",
        "\\": "",
        "' OR 1=1 --": "",
        "otter NOT heron": "",
        "nul\0": "",
        "\ud83d": "",
        "z" * 5000: "",
    }.items():
        assert find(text) == expected, text
        assert metadata_store.runs.count(Filter(text=text), T0) == len(expected.split())


def test_search_follows_the_newest_values(metadata_store: MetadataStore) -> None:
    run_id = made(
        metadata_store, "abc", config={"opt": "adam", "note": "old"}, run={"notes": "first thoughts"}
    )
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"opt": "lion"}, T0 + 1)])
    assert uids(metadata_store, Filter(text="lion first old")) == ["abc"]
    assert uids(metadata_store, Filter(text="adam")) == []
    assert uids(metadata_store, where("config.opt = adam")) == []
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"opt": {"name": "sgd"}}, T0 + 2)])
    assert metadata_store.runs.fields(EVERYTHING, T0) == ["config.note", "config.opt.name"]
    assert uids(metadata_store, where("config.opt.name = sgd")) == ["abc"]


def test_new_runs_do_not_shift_pages(metadata_store: MetadataStore) -> None:
    fill(metadata_store)
    first = metadata_store.runs.page(EVERYTHING, RunSort(), T0, limit=3)
    joined(metadata_store, "newer", started_ms=T0 + 10_000)
    second = metadata_store.runs.page(EVERYTHING, RunSort(), T0, limit=3, after=first.next)
    assert [run.uid for run in (*first.runs, *second.runs)] == list("fedcba")
    assert second.next is None


@pytest.mark.parametrize("by", ["started_ms", "name", "config.lr", "config.mixed", "config.absent"])
@pytest.mark.parametrize("then", [(), (RunSort("id"),)])
def test_any_part_of_a_list_can_be_read(six: MetadataStore, by: str, then: tuple[RunSort, ...]) -> None:
    order = RunSort(by, then=then)
    everything = uids_of(six.runs.page(EVERYTHING, order, T0))
    assert len(everything) == 6
    for skip in range(7):
        page = six.runs.page(EVERYTHING, order, T0, limit=2, skip=skip)
        assert uids_of(page) == everything[skip : skip + 2]
        if page.next is not None:
            following = six.runs.page(EVERYTHING, order, T0, limit=2, after=page.next)
            assert uids_of(following) == everything[skip + 2 : skip + 4]


def uids_of(page: RunPage) -> list[str]:
    return [run.uid for run in page.runs]


def test_all_pages_use_states_of_the_first_page(six: MetadataStore) -> None:
    """Ten seconds later all runs are lost, and still on the second page of those that are running."""
    running = Filter(states=("running",))
    first = six.runs.page(running, RunSort(), T0 + 10_000, limit=3)
    second = six.runs.page(running, RunSort(), T0 + 10_001, limit=3, after=first.next)
    assert [run.uid for run in (*first.runs, *second.runs)] == list("fedcba")
    assert {run.state for run in first.runs} == {"running"}
    assert {run.state for run in second.runs} == {"lost"}
    assert six.runs.page(running, RunSort(), T0 + 10_001).runs == []


@pytest.mark.parametrize(
    "position",
    [
        None,
        {},
        [1, 2],
        ["name", True, None, 0, "a", 1],
        ["name", True, 1, 0, [], 1],
        ["name", True, 1, 0, 5, 1],
        ["name", True, 1, 0, "a\0", 1],
        ["name", True, 1, 0, "a", 2**70],
        ["name", True, 2**70, 0, "a", 1],
        ["name", True, 1, 0, "a", "1"],
    ],
)
def test_invalid_cursors(six: MetadataStore, position: object) -> None:
    after = base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")
    for text in (after, "", "x", "é"):
        with pytest.raises(ValueError, match="expected the `next` of a previous page"):
            six.runs.page(EVERYTHING, RunSort("name"), T0, after=text)


def test_cursor_of_another_order_raises(six: MetadataStore) -> None:
    after = six.runs.page(EVERYTHING, RunSort(), T0, limit=1).next
    with pytest.raises(ValueError, match="belongs to a list sorted by -started_ms"):
        six.runs.page(EVERYTHING, RunSort("name"), T0, after=after)


def test_invalid_queries(metadata_store: MetadataStore) -> None:
    with pytest.raises(
        ValueError, match=r"by 'colour'; expected one of id, name, .* config\.…, summary\.… or system\.…"
    ):
        RunSort("colour")
    with pytest.raises(ValueError, match=r"cannot sort runs by 'config\.'"):
        RunSort("config.")
    with pytest.raises(ValueError, match="unknown state 'dead'; expected one of running, crashed"):
        Filter(states=("dead",))
    for limit in (0, 1001):
        with pytest.raises(ValueError, match=f"invalid limit {limit}; expected 1 to 1000"):
            metadata_store.runs.page(EVERYTHING, RunSort(), T0, limit=limit)
    with pytest.raises(
        ValueError, match="cannot count runs by 'colour'; expected one of project, state, tag"
    ):
        metadata_store.runs.counts(EVERYTHING, "colour", T0)


COMPARE = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt}


@dataclass
class Model:
    """A run as a naive reader would keep it."""

    uid: str
    number: int
    project: str
    state: str
    tags: list[str]
    started_ms: int
    values: dict[str, Any]

    def meets(self, run_filter: Filter) -> bool:
        texts = [self.uid, *self.tags, *(str(v).lower() for v in self.values.values() if v is not None)]
        return (
            run_filter.project in (None, self.project)
            and (not run_filter.states or self.state in run_filter.states)
            and all(tag in self.tags for tag in run_filter.tags)
            and all(any(word in text for text in texts) for word in run_filter.text.split())
            and all(self._holds(predicate) for predicate in run_filter.where)
        )

    def _holds(self, predicate: Predicate) -> bool:
        mine, other = self.values.get(predicate.field.removeprefix("config.")), predicate.value
        if mine is not None and mine != mine:
            mine = "NaN"  # compared as a text
        if mine is None or isinstance(mine, str) != isinstance(other, str):
            return False
        return bool(COMPARE[predicate.operator](mine, other))

    def place(self, sort: RunSort) -> tuple[Any, ...]:
        sign = -1 if sort.descending else 1
        if sort.by == "started_ms":
            return (sign * self.started_ms, sign * self.number)
        value = self.values.get(sort.by.removeprefix("config."))
        if value is None:
            return (2, -self.started_ms, -self.number)
        if isinstance(value, str) or value != value:
            text = "NaN" if value != value else str(value)
            return (1, [sign * ord(letter) for letter in text] + [sign * -1], sign * self.number)
        return (0, sign * value, sign * self.number)


VALUE = (
    st.none()
    | st.sampled_from([0, 1, 2.5, -3, math.nan, math.inf])
    | st.sampled_from(["abc", "abd", "b", "xyz"])
)
DRAWN = st.tuples(
    st.sampled_from(["p", "q"]),
    st.sampled_from(["running", "finished", "failed"]),
    st.lists(st.sampled_from(["red", "blue"]), unique=True, max_size=2),
    st.integers(0, 3),
    st.dictionaries(st.sampled_from(["u", "v"]), VALUE),
)
OPERAND = st.sampled_from([0, 1.0, 2, "abc", "b"])
FIELD = st.sampled_from(["config.u", "config.v"])
PREDICATE = st.builds(Predicate, FIELD, st.sampled_from(list(COMPARE)), OPERAND)
ASKED = st.builds(
    Filter,
    project=st.sampled_from([None, None, "p", "nowhere"]),
    states=st.lists(st.sampled_from(["running", "finished", "lost"]), unique=True, max_size=2).map(tuple),
    tags=st.sampled_from([(), (), ("red",), ("red", "blue")]),
    text=st.sampled_from(["", "", "abc", "ab", "r", "xyz abc", "lue"]),
    where=st.lists(PREDICATE, max_size=2).map(tuple),
)
SORTS = st.builds(RunSort, st.sampled_from(["started_ms", "config.u", "config.v"]), st.booleans())
EXAMPLES = itertools.count()


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=st.lists(DRAWN, max_size=12),
    requests=st.lists(st.tuples(ASKED, SORTS, st.integers(1, 5)), min_size=8, max_size=8),
)
def test_filters_match_a_naive_implementation(
    metadata_store: MetadataStore,
    few: None,
    drawn: list[tuple[Any, ...]],
    requests: list[tuple[Filter, RunSort, int]],
) -> None:
    metadata_store.runs.delete(metadata_store.runs.ids(EVERYTHING, T0), T0)
    names = [f"{next(EXAMPLES)}" for _ in drawn]
    starts = zip(names, drawn, strict=True)
    joining = [WriterRegistration(uid, "w", run[0], started_ms=T0 + run[3]) for uid, run in starts]
    numbers = metadata_store.writers.join(joining, T0)
    models, updates, ends = [], [], []
    for uid, number, (project, state, tags, start, values) in zip(names, numbers, drawn, strict=True):
        models.append(Model(uid, number.run_id, project, state, tags, T0 + start, values))
        updates.append(SectionUpdate(number.run_id, "config", values, T0))
        updates.append(SectionUpdate(number.run_id, "run", {"tags": tags}, T0))
        if state != "running":
            ends.append(WriterEnd(number.writer_id, Ending(state), T0))
    metadata_store.sections.merge(updates)
    metadata_store.writers.record_ends(ends)
    for run_filter, sort, limit in requests:
        meeting = [model for model in models if model.meets(run_filter)]
        expected = [model.uid for model in sorted(meeting, key=lambda model: model.place(sort))]
        assert uids(metadata_store, run_filter, sort.by, sort.descending, limit) == expected
        assert metadata_store.runs.count(run_filter, T0) == len(expected)
        assert metadata_store.runs.count(run_filter, T0, up_to=2) == min(2, len(expected))


@pytest.mark.parametrize("by", SORTED_COLUMNS)
def test_sorts_by_every_column(six: MetadataStore, by: str) -> None:
    up, down = uids(six, by=by, descending=False, limit=2), uids(six, by=by, limit=2)
    assert sorted(up) == list("abcdef")
    assert down == up[::-1]
