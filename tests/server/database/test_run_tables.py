"""Tables of runs: filter texts, orders of several parts, columns, groups and system statistics."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.model.ending import Ending
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run_groups import ColumnSummary, TooManyGroups
from runvitals.model.run_sort import RunSort, encode_cursor
from runvitals.model.system_statistics import statistic_names
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage import run_groups
from runvitals.server.runs.storage.run_statistics import ComputedStatistics
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writers import WriterEnd
from tests.server.database.runs import EVERYTHING, T0, joined, uids


@pytest.fixture(scope="module")
def four(shared_store: MetadataStore) -> dict[str, int]:
    """Four runs; `d` has ended."""
    runs: dict[str, tuple[str, dict[str, Any], dict[str, Any], dict[str, float]]] = {
        "a": ("digits", {"name": "Résumé 50%", "tags": ["x", "y"]}, {"lr": 0.1}, {"system.gpu": 10.0}),
        "b": ("digits", {"notes": "To_do [*]", "group": "g1"}, {"lr": 0.2, "m": "vit"}, {}),
        "c": ("other", {"group": "g1", "tags": ["x"]}, {"lr": "high", "m": "resnet"}, {"system.gpu": 90.0}),
        "d": ("other", {"name": "under_score?"}, {"m": "resnext"}, {"system.gpu": 50.0}),
    }
    numbers = {}
    for index, (uid, (project, about, config, statistics)) in enumerate(runs.items()):
        writer = joined(
            shared_store,
            uid,
            project=project,
            started_ms=T0 + index,
            writer=f"monitor.n{index}.a",
            host=f"n{index}",
        )
        shared_store.sections.merge(
            [
                SectionUpdate(writer.run_id, "run", about, T0),
                SectionUpdate(writer.run_id, "config", config, T0),
            ]
        )
        shared_store.run_statistics.put([ComputedStatistics(writer.run_id, T0, statistics)])
        numbers[uid] = writer.run_id
        if uid == "d":
            shared_store.writers.record_ends([WriterEnd(writer.writer_id, Ending("failed", 1), T0)])
    return numbers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "abcd"),
        ("tag:x", "ac"),
        ("tag:x,y -tag:y", "c"),
        ("tag:?", ""),
        ("-tag:*", "bd"),
        ("host:n1,n2", "bc"),
        ("host:n*", "abcd"),
        ("-host:n*", ""),
        ("host:N*", ""),
        ("project:dig*", "ab"),
        ("project:digits,other", "abcd"),
        ("entity:main", ""),
        ("-entity:main", "abcd"),
        ("user:*", ""),
        ("group:g1", "bc"),
        ('group:""', "ad"),
        ("id:a,d", "ad"),
        ("id:*a*", "a"),
        ("name:résumé", "a"),
        ("name:RÉSUMÉ", ""),
        ("name:50%", "a"),
        ('name:"%"', "a"),
        ("name:under_", "d"),
        ("name:underxscore", ""),
        ("name:UNDER*?", "d"),
        ("note:TO_DO", "b"),
        ('note:"[*]"', "b"),
        ("note:todo", ""),
        ("-note:to", "acd"),
        ("device:GPU-1", ""),
        ("state:failed", "d"),
        ("-state:failed", "abc"),
        ("exit_code:0,1", "d"),
        ("-exit_code=1", "abc"),
        ("config.lr:0.1,high", "ac"),
        ("config.m:res*", "cd"),
        ("-config.m:res*", "ab"),
        ("config.unknown:x*", ""),
        ("-config.unknown=1", "abcd"),
        ("gpu.util<60", "ad"),
        ("-gpu.util<60", "bc"),
        ("gpu.util.max>0", ""),
        ("résumé", "a"),
        ('"[*]"', "b"),
        ("-digits", "abcd"),
    ],
)
def test_filter_texts(shared_store: MetadataStore, four: dict[str, int], text: str, expected: str) -> None:
    run_filter = Filter(terms=parse(text))
    assert "".join(sorted(uids(shared_store, run_filter))) == expected
    assert shared_store.runs.count(run_filter, T0) == len(expected)


@pytest.mark.parametrize("limit", [1, 2, 10])
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("project,-name", "badc"),
        ("-config.lr,id", "bacd"),
        ("config.m,-system.gpu", "cdba"),
        ("group,-system.gpu,id", "dacb"),
        ("-config.unknown,-id", "dcba"),
        ("state,-started_ms", "dcba"),
    ],
)
def test_orders_of_several_parts(
    shared_store: MetadataStore, four: dict[str, int], order: str, expected: str, limit: int
) -> None:
    found, after = "", None
    while True:
        page = shared_store.runs.page(EVERYTHING, RunSort.parse(order), T0, limit, after)
        found += "".join(run.uid for run in page.runs)
        after = page.next
        if after is None:
            break
    assert found == expected


def test_cursors_of_several_parts_are_checked(shared_store: MetadataStore, four: dict[str, int]) -> None:
    sort = RunSort.parse("project,config.lr")
    after = shared_store.runs.page(EVERYTHING, sort, T0, limit=1).next
    with pytest.raises(ValueError, match=r"belongs to a list sorted by project,config\.lr"):
        shared_store.runs.page(EVERYTHING, RunSort.parse("project,-config.lr"), T0, after=after)
    wrong = RunSort.parse("config.lr,project")
    for position in ((T0, 0, 0.1, "", 5, 1), (T0, 0, True, "", "x", 1), (None, 0, 0.1, "", "x", 1)):
        with pytest.raises(ValueError, match="expected the `next` of a previous page"):
            shared_store.runs.page(EVERYTHING, wrong, T0, after=encode_cursor(wrong, position))


def test_columns(shared_store: MetadataStore, four: dict[str, int]) -> None:
    names = ["config.lr", "system.gpu", "config.unknown"]
    assert shared_store.runs.field_values(list(four.values()), names) == {
        four["a"]: {"config.lr": 0.1, "system.gpu": 10.0},
        four["b"]: {"config.lr": 0.2},
        four["c"]: {"config.lr": "high", "system.gpu": 90.0},
        four["d"]: {"system.gpu": 50.0},
    }


def test_groups(shared_store: MetadataStore, four: dict[str, int]) -> None:
    groups = shared_store.runs.groups(EVERYTHING, ["project"], ["system.gpu", "config.lr"], T0)
    by_values = {group.values: group for group in groups}
    other = by_values["other",]
    assert (other.runs, other.states, other.first_ms, other.last_ms) == (
        2,
        {"running": 1, "failed": 1},
        T0 + 2,
        T0 + 3,
    )
    assert other.columns == {
        "system.gpu": ColumnSummary(2, 50.0, 70.0, 90.0, 140.0),
        "config.lr": ColumnSummary(0),
    }
    assert by_values["digits",].columns["config.lr"] == ColumnSummary(
        2, 0.1, pytest.approx(0.15), 0.2, pytest.approx(0.3)
    )


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ([], {(): 4}),
        (["tag"], {("x",): 2, ("y",): 1, (None,): 2}),
        (["host"], {("n0",): 1, ("n1",): 1, ("n2",): 1, ("n3",): 1}),
        (["user"], {(None,): 4}),
        (["entity", "state"], {(None, "running"): 3, (None, "failed"): 1}),
        (["config.lr"], {(0.1,): 1, (0.2,): 1, ("high",): 1, (None,): 1}),
        (["group", "config.m"], None),
    ],
)
def test_what_runs_are_grouped_by(
    shared_store: MetadataStore, four: dict[str, int], by: list[str], expected: dict[Any, int] | None
) -> None:
    counts = {group.values: group.runs for group in shared_store.runs.groups(EVERYTHING, by, [], T0)}
    if expected is None:
        expected = {(None, None): 1, ("g1", "vit"): 1, ("g1", "resnet"): 1, (None, "resnext"): 1}
    assert counts == expected


def test_too_many_groups_are_rejected(
    shared_store: MetadataStore, four: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_groups, "MAX_GROUPS", 3)
    with pytest.raises(TooManyGroups):
        shared_store.runs.groups(EVERYTHING, ["host"], [], T0)
    assert len(shared_store.runs.groups(Filter(project="other"), ["host"], [], T0)) == 2


def test_choices(shared_store: MetadataStore, four: dict[str, int]) -> None:
    by_name = {choice.name: choice for choice in shared_store.runs.choices(EVERYTHING, T0)}
    assert by_name["tag"].values == ("x", "y")
    assert sorted(map(str, by_name["host"].values)) == ["n0", "n1", "n2", "n3"]
    assert by_name["group"].values == ("g1",)
    assert (by_name["config.lr"].kind, sorted(map(float, by_name["config.lr"].values))) == (
        "number",
        [0.1, 0.2],
    )
    assert by_name["system.gpu"].kind == "number"
    assert "config.lr" not in {one.name for one in shared_store.runs.choices(Filter(terms=parse("id:d")), T0)}


def test_statistics_are_replaced_and_listed_as_due(metadata_store: MetadataStore) -> None:
    table = metadata_store.run_statistics
    first, second = (joined(metadata_store, uid, started_ms=T0) for uid in "ab")
    assert [run.uid for run in table.due(T0, 10)] == ["b", "a"]
    assert [run.uid for run in table.due(T0, 10, newer_than=first.run_id)] == ["b"]
    assert [run.uid for run in table.due(T0, 10, second.run_id, [first.run_id])] == ["a"]
    assert len(table.due(T0, 1)) == 1
    table.put([ComputedStatistics(first.run_id, T0, dict.fromkeys(statistic_names(), 1.0))])
    gone = 12345  # purged a moment ago
    table.put([ComputedStatistics(number, T0, {"system.cpu": 2.0}) for number in (gone, first.run_id)])
    assert metadata_store.runs.field_values([first.run_id], list(statistic_names())) == {
        first.run_id: {"system.cpu": 2.0}
    }
    assert [run.uid for run in table.due(T0, 10)] == ["b"]
    assert table.running(T0) == {first.run_id, second.run_id}
