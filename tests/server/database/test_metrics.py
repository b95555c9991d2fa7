"""Ids of metrics and key lists: assigned once, also with concurrent writers."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage import metrics
from tests.server.database.runs import joined


def test_key_has_one_permanent_id(metadata_store: MetadataStore, address: str) -> None:
    first = metadata_store.metrics.ids(["cpu", "gpu.0.powerWatts"])
    assert len(set(first.values())) == 2
    assert metadata_store.metrics.ids(["gpu.0.powerWatts", "new", "cpu"]).items() >= first.items()
    with open_metadata_store(address) as other:
        assert other.metrics.ids(["cpu"]) == {"cpu": first["cpu"]}
        assert other.metrics.keys(first.values()) == {number: key for key, number in first.items()}


def test_keys_are_found_also_while_the_cache_begins_anew(
    metadata_store: MetadataStore, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server with 200,000 keys of metrics answered without those that were in the cache before."""
    monkeypatch.setattr(metrics, "_MAX_CACHED", 10)
    with open_metadata_store(address) as other:  # has nothing of them in its cache
        later = other.metrics.ids([f"later.{n}" for n in range(6)])
    first = metadata_store.metrics.ids([f"first.{n}" for n in range(6)])
    expected = {number: key for key, number in {**first, **later}.items()}
    assert metadata_store.metrics.keys(expected) == expected
    assert metadata_store.metrics.keys(expected) == expected


def test_find_creates_no_ids(metadata_store: MetadataStore) -> None:
    number = metadata_store.metrics.ids(["cpu"])["cpu"]
    assert metadata_store.metrics.find(["cpu", "unheard.of"]) == {"cpu": number}
    assert metadata_store.metrics.keys([number, 4711]) == {number: "cpu"}
    assert metadata_store.metrics.with_prefix() == {"cpu": number}


def test_keys_with_a_prefix(metadata_store: MetadataStore) -> None:
    ids = metadata_store.metrics.ids(["gpu.0.temp", "gpu.1.temp", "gpu", "gpuX", "cpu", "gpu.é", "gpu._"])
    assert set(metadata_store.metrics.with_prefix("gpu.")) == {"gpu.0.temp", "gpu.1.temp", "gpu.é", "gpu._"}
    assert metadata_store.metrics.with_prefix("") == ids


def test_keys_may_be_any_text_but_empty_or_too_long(metadata_store: MetadataStore) -> None:
    keys = ["loss 📉", "a'b\"c", "a\0b", "half \ud83d", "%_\\", "x" * 512]
    ids = metadata_store.metrics.ids(keys)
    assert list(ids) == keys
    assert set(metadata_store.metrics.keys(ids.values()).values()) == {*keys[:2], "a␀b", "half �", *keys[4:]}
    for key in ("", "x" * 513):
        with pytest.raises(ValueError, match="1 to 512 characters"):
            metadata_store.metrics.ids(["cpu", key])


def test_key_lists_have_ids(metadata_store: MetadataStore, address: str) -> None:
    schema = metadata_store.metrics.schema(["cpu", "memory"])
    assert metadata_store.metrics.keys(schema.metric_ids) == dict(
        zip(schema.metric_ids, ["cpu", "memory"], strict=True)
    )
    assert metadata_store.metrics.schema(["cpu", "memory"]) == schema
    assert metadata_store.metrics.schema(["memory", "cpu"]).id != schema.id
    assert metadata_store.metrics.schema([]).metric_ids == ()
    with open_metadata_store(address) as other:
        assert other.metrics.schema_of(schema.id) == schema
        assert other.metrics.schema_of(schema.id) == schema  # from memory
    with pytest.raises(LookupError, match="unknown schema 4711"):
        metadata_store.metrics.schema_of(4711)
    with pytest.raises(ValueError, match="duplicate metric 'cpu'"):
        metadata_store.metrics.schema(["cpu", "memory", "cpu"])


def test_many_key_lists_get_ids_together(metadata_store: MetadataStore) -> None:
    before = metadata_store.metrics.schema(["cpu", "memory"])
    lists = [["loss"], ["cpu", "memory"], [], ["loss"], ["memory", "loss"]]
    schemas = metadata_store.metrics.schemas(lists)
    assert schemas == [metadata_store.metrics.schema(keys) for keys in lists]
    assert schemas[1] == before
    with pytest.raises(ValueError, match="duplicate metric 'new'"):
        metadata_store.metrics.schemas([["old"], ["new", "new"]])


def test_metrics_of_a_run_by_writer(metadata_store: MetadataStore) -> None:
    monitor = joined(metadata_store, "abc")
    trainer = joined(metadata_store, "abc", writer="train.node1.7.a")
    other = joined(metadata_store, "other")
    host, more, loss = (
        metadata_store.metrics.schema(keys) for keys in (["cpu"], ["cpu", "gpu.0.temp"], ["loss"])
    )
    used = [(monitor.writer_id, host.id), (monitor.writer_id, more.id), (trainer.writer_id, loss.id)]
    metadata_store.metrics.record_schemas([*used, (other.writer_id, host.id)])
    metadata_store.metrics.record_schemas(used)
    assert metadata_store.metrics.of_run(monitor.run_id) == {
        monitor.writer_id: set(more.metric_ids),
        trainer.writer_id: set(loss.metric_ids),
    }


EXAMPLES = itertools.count()
KEYS = [f"key.{number}" for number in range(12)]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=st.lists(st.lists(st.sampled_from(KEYS), min_size=1, max_size=8), min_size=2, max_size=6))
def test_concurrent_requests_get_the_same_ids(
    metadata_store: MetadataStore, requests: list[list[str]]
) -> None:
    """Each asks in an order of its own, and through a memory of its own."""
    example = f"{next(EXAMPLES)}."
    others = [[example + key for key in keys] for keys in requests]
    with ThreadPoolExecutor(len(others)) as threads:
        results = list(
            threads.map(lambda keys: type(metadata_store.metrics)(metadata_store._database).ids(keys), others)
        )
    together: dict[str, int] = {}
    for keys, result in zip(others, results, strict=True):
        assert result.keys() == set(keys)
        for key, number in result.items():
            assert together.setdefault(key, number) == number
    assert len(set(together.values())) == len(together)
    assert metadata_store.metrics.with_prefix(example) == together
