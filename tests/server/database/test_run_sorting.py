"""Orders of several parts, on both databases: each page is a part of the whole list in the right order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run_sort import RunSort
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from tests.server.database.runs import T0

RUNS = 40
Values = dict[str, Any]


@pytest.fixture(scope="module")
def runs(shared_store: MetadataStore) -> list[Values]:
    """Runs that share most of their values, in the order of their ids."""
    chance = random.Random(4)
    stored: list[Values] = []
    for number in range(RUNS):
        config = {
            "lr": chance.choice([0.1, 0.01, "high", "low", None]),
            "model": chance.choice(["vit", "unet", 7]),
        }
        group = chance.choice(["", "a", "b"])
        stored.append(
            {"id": f"run{number:02}", "group": group, "started_ms": T0 + chance.randrange(4), **config}
        )
    writers = shared_store.writers.join(
        [
            WriterRegistration(one["id"], "monitor.n.a", project="p", started_ms=one["started_ms"])
            for one in stored
        ],
        T0,
    )
    shared_store.sections.merge(
        [
            SectionUpdate(writer.run_id, section, values, T0)
            for writer, one in zip(writers, stored, strict=True)
            for section, values in (
                ("run", {"group": one["group"]}),
                ("config", {name: one[name] for name in ("lr", "model") if one[name] is not None}),
            )
        ]
    )
    return [{**one, "number": writer.run_id} for one, writer in zip(stored, writers, strict=True)]


def key(run: Values, part: str) -> Any:
    """Numbers come before texts, and runs without a value last, in both directions."""
    name = part.removeprefix("-").removeprefix("config.")
    value = run[name]
    if not part.removeprefix("-").startswith("config."):
        return value
    if value is None:
        return (2, 0.0, "")
    return (1, 0.0, value) if isinstance(value, str) else (0, value, "")


def in_order(runs: list[Values], order: str) -> list[str]:
    parts = order.split(",")
    ordered = sorted(runs, key=lambda run: run["number"], reverse=parts[-1].startswith("-"))
    for part in reversed(parts):
        descending = part.startswith("-")
        if part.lstrip("-").startswith("config."):
            for kind in (2, 1, 0):  # the kinds ascend in both directions
                of_kind = [run for run in ordered if key(run, part)[0] == kind]
                of_kind.sort(key=lambda run: key(run, part)[1:], reverse=descending)
                ordered = [*of_kind, *(run for run in ordered if key(run, part)[0] != kind)]
        else:
            ordered.sort(key=lambda run: key(run, part), reverse=descending)
    return [run["id"] for run in ordered]


ORDERS = (
    "config.lr,id",
    "-config.lr,config.model",
    "config.model,-config.lr,-started_ms",
    "group,-config.lr",
    "-group,config.lr,config.model,started_ms",
    "started_ms,-config.model",
    "state,config.lr",
    "config.unknown,-config.lr",
)


@pytest.mark.parametrize("order", ORDERS)
def test_pages_are_parts_of_the_whole_list(
    shared_store: MetadataStore, runs: list[Values], order: str
) -> None:
    def page(limit: int, skip: int = 0, after: str | None = None) -> tuple[list[str], str | None]:
        found = shared_store.runs.page(run_filter, sort, T0, limit, after, skip)
        return [run.uid for run in found.runs], found.next

    sort = RunSort.parse(order)
    for text, members in (("", runs), ("group:a", [one for one in runs if one["group"] == "a"])):
        run_filter = Filter(terms=parse(text))
        expected = in_order([{**one, "state": ""} for one in members], order.replace("config.unknown,", ""))
        for skip in range(0, len(expected), 3):
            assert page(5, skip)[0] == expected[skip : skip + 5], (text, skip)
        found, after = page(4)
        while after is not None:
            more, after = page(4, 0, after)
            found += more
        assert found == expected, text


def test_a_page_may_be_left_out_after_another(shared_store: MetadataStore, runs: list[Values]) -> None:
    sort = RunSort.parse("group,-config.lr")
    after = shared_store.runs.page(Filter(), sort, T0, 5).next
    page = shared_store.runs.page(Filter(), sort, T0, 5, after, 7)
    assert [run.uid for run in page.runs] == in_order(runs, sort.text)[12:17]
