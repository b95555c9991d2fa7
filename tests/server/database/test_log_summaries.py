"""Summaries of logged rows: each row counts once, explicit values take precedence, runs sort by them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from runvitals.model.errors import UnknownRun
from runvitals.model.fields import MAX_FIELDS
from runvitals.readers.journals.run_builder import MergedSection
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.log_summaries import (
    LAST_STEP,
    LoggedRows,
    LoggedValues,
    add_logged_rows,
    replace_logged_rows,
)
from runvitals.server.runs.storage.sections import SectionUpdate
from tests.server.database.runs import T0, joined, uids, where


def log(
    metadata_store: MetadataStore,
    run_id: int,
    seq: int,
    *rows: dict[str, float],
    writer: str = "train.n1",
    last_step: float | None = None,
) -> None:
    metrics = {}
    for name in {name for row in rows for name in row}:
        values = [row[name] for row in rows if name in row]
        last = LoggedValues(len(values), sum(values), min(values), max(values), values[-1], T0 + seq)
        metrics[name] = last
    logged = LoggedRows(run_id, writer, len(metrics), seq, metrics, last_step=last_step)
    metadata_store.write(lambda connection: add_logged_rows(connection, [logged]))


def summary(metadata_store: MetadataStore, run_id: int) -> dict[str, Any]:
    return metadata_store.sections.read([run_id])[run_id].summary()


def define(metadata_store: MetadataStore, run_id: int, **kinds: str) -> None:
    metrics = {name: {"summary": kind} for name, kind in kinds.items()}
    metadata_store.sections.merge([SectionUpdate(run_id, "metrics", metrics, T0)])


def test_summaries_follow_their_definitions(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    define(metadata_store, run_id, loss="min", acc="max", speed="mean", debug="none")
    log(
        metadata_store,
        run_id,
        1,
        *({"loss": n, "acc": n, "speed": n, "debug": n, "lr": n} for n in (2.0, 1.0, 3.0)),
    )
    log(metadata_store, run_id, 9, {"loss": 4.0, "acc": 0.0, "speed": 6.0, "lr": 0.5})
    assert summary(metadata_store, run_id) == {"loss": 1.0, "acc": 3.0, "speed": 3.0, "lr": 0.5}


def test_the_last_step_is_a_field_and_not_in_the_summary(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    log(metadata_store, run_id, 1, {"loss": 1.0}, last_step=5.0)
    log(metadata_store, run_id, 2, {"loss": 2.0}, writer="train.n2", last_step=3.0)
    metadata_store.sections.merge([SectionUpdate(run_id, "summary", {"best": 1.0}, T0)])
    assert summary(metadata_store, run_id) == {"loss": 2.0, "best": 1.0}
    assert uids(metadata_store, where(f"{LAST_STEP} = 5")) == ["abc"]
    left = {"loss": LoggedValues(1, 9.0, 9.0, 9.0, 9.0, T0)}
    metadata_store.write(lambda connection: replace_logged_rows(connection, run_id, left, 2.0, T0))
    assert uids(metadata_store, where(f"{LAST_STEP} = 2")) == ["abc"]
    metadata_store.write(lambda connection: replace_logged_rows(connection, run_id, {}, None, T0))
    assert uids(metadata_store, where(f"{LAST_STEP} >= 0")) == []


def test_repeated_rows_are_counted_once(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    define(metadata_store, run_id, speed="mean")
    for seq in (1, 5, 1, 5):
        log(metadata_store, run_id, seq, {"speed": float(seq)})
    assert summary(metadata_store, run_id) == {"speed": 3.0}
    log(metadata_store, run_id, 1, {"speed": 9.0}, writer="train.n2")
    assert summary(metadata_store, run_id) == {"speed": 5.0}, "another writer's first row"


def test_last_value_by_time_over_all_writers(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    log(metadata_store, run_id, 7, {"loss": 7.0})
    log(metadata_store, run_id, 3, {"loss": 3.0}, writer="train.n2")
    assert summary(metadata_store, run_id) == {"loss": 7.0}


def test_runs_are_filtered_and_sorted_by_summary(metadata_store: MetadataStore) -> None:
    runs = {uid: joined(metadata_store, uid).run_id for uid in ("a", "b", "c", "d")}
    for uid, loss in (("a", 0.5), ("b", 0.1), ("c", 0.3)):
        log(metadata_store, runs[uid], 1, {"loss": loss})
    assert uids(metadata_store, by="summary.loss", descending=False) == ["b", "c", "a", "d"]
    metadata_store.sections.merge([SectionUpdate(runs["b"], "summary", {"loss": 9.0}, T0)])
    log(metadata_store, runs["b"], 2, {"loss": 0.0})
    assert uids(metadata_store, by="summary.loss", descending=False) == ["c", "a", "b", "d"]
    assert uids(metadata_store, where("summary.loss < 0.4")) == ["c"]
    metadata_store.sections.merge([SectionUpdate(runs["b"], "summary", {}, T0 + 1, removed=("loss",))])
    assert uids(metadata_store, by="summary.loss", descending=False) == ["b", "c", "a", "d"]
    assert summary(metadata_store, runs["b"]) == {"loss": 0.0}


def test_limits_on_metrics_and_writers(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    log(metadata_store, run_id, 1, {f"m{n}": float(n) for n in range(MAX_FIELDS + 500)})
    log(metadata_store, run_id, 2, {"another": 1.0, "m1": 5.0})
    values = summary(metadata_store, run_id)
    assert len(values) == MAX_FIELDS
    assert "another" not in values


def test_unknown_run_raises(metadata_store: MetadataStore) -> None:
    with pytest.raises(UnknownRun):
        log(metadata_store, 4711, 1, {"loss": 1.0})


def test_removed_keys_do_not_reappear(metadata_store: MetadataStore) -> None:
    run_id = joined(metadata_store, "abc").run_id
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"lr": 0.1, "seed": 1}, T0)])
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"new": 1}, T0 + 5, removed=("lr",))])
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"lr": 0.2}, T0 + 3)])
    assert metadata_store.sections.read([run_id])[run_id].shared["config"] == {"seed": 1, "new": 1}
    assert uids(metadata_store, where("config.lr > 0")) == []
    metadata_store.sections.merge([SectionUpdate(run_id, "config", {"lr": 0.3}, T0 + 7)])
    assert uids(metadata_store, where("config.lr > 0")) == ["abc"]


def test_same_summary_as_journal_readers(metadata_store: MetadataStore) -> None:
    for seed in range(30):
        chance, merged = random.Random(seed), MergedSection()
        run_id = joined(metadata_store, f"run-{seed}").run_id
        for _ in range(8):
            time_ms, key, value = chance.randrange(4), chance.choice("ab"), chance.randrange(99)
            if chance.random() < 0.5:
                merged.remove([key], time_ms)
                update = SectionUpdate(run_id, "config", {}, time_ms, removed=(key,))
            else:
                merged.update({key: value}, time_ms)
                update = SectionUpdate(run_id, "config", {key: value}, time_ms)
            metadata_store.sections.merge([update])
        config = metadata_store.sections.read([run_id])[run_id].shared.get("config", {})
        assert config == merged.values, f"seed {seed}"
