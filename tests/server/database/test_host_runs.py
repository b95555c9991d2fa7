"""Which runs were on which hosts, as far as a principal may read them."""

from __future__ import annotations

from runvitals.model.device import RunDevice
from runvitals.model.filter import ReadableRuns
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterHeartbeat

T0 = 1_800_000_000_000
NOW = T0 + 1_000_000


def add(metadata_store: MetadataStore, run: str, host: str, begin: int, end: int, project: str = "p") -> int:
    """A run with a record from a host at two times; its number."""
    registration = WriterRegistration(
        run, f"monitor.{host}.{run}", project, role="monitor", host=host, started_ms=begin
    )
    [joined] = metadata_store.writers.join([registration], begin)
    metadata_store.writers.record_heartbeats([WriterHeartbeat(joined.writer_id, NOW, end)])
    return joined.run_id


def test_the_newest_run_of_each_host(metadata_store: MetadataStore) -> None:
    old = add(metadata_store, "old", "node1", T0, T0 + 10)
    new = add(metadata_store, "new", "node1", T0 + 5, T0 + 20, "other")
    both = add(metadata_store, "both", "node2", T0, T0 + 30)
    assert add(metadata_store, "both", "node3", T0, T0 + 40) == both
    newest = metadata_store.host_runs.newest
    assert newest(T0, NOW) == {"node1": new, "node2": both, "node3": both}
    assert newest(T0 + 25, NOW) == {"node2": both, "node3": both}
    only = ReadableRuns(projects=frozenset([metadata_store.projects.id("p")]))
    assert newest(T0, NOW, only) == {"node1": old, "node2": both, "node3": both}
    assert newest(T0, NOW, ReadableRuns()) == {}
    assert newest(T0, NOW, ReadableRuns(run_id=new)) == {"node1": new}
    metadata_store.runs.delete([new], NOW)
    assert newest(T0, NOW)["node1"] == old


def test_the_runs_of_a_host_in_time(metadata_store: MetadataStore) -> None:
    first = add(metadata_store, "first", "node1", T0, T0 + 10)
    second = add(metadata_store, "second", "node1", T0 + 20, T0 + 30, "other")
    add(metadata_store, "third", "node2", T0, T0 + 30)
    on_host = metadata_store.host_runs.on_host
    assert on_host("node1", T0, NOW, 10, NOW) == [second, first]
    assert on_host("node1", T0, NOW, 1, NOW) == [second]
    assert on_host("node1", T0 + 11, T0 + 19, 10, NOW) == []
    assert on_host("node1", T0 + 10, T0 + 20, 10, NOW) == [second, first]
    only = ReadableRuns(projects=frozenset([metadata_store.projects.id("p")]))
    assert on_host("node1", T0, NOW, 10, NOW, only) == [first]
    assert on_host("node", T0, NOW, 10, NOW) == []
    metadata_store.runs.delete([first], NOW)
    assert on_host("node1", T0, NOW, 10, NOW) == [second]


def test_the_devices_of_several_runs(metadata_store: MetadataStore) -> None:
    runs = [add(metadata_store, name, "node1", T0, T0 + 1) for name in ("a", "b", "c")]
    for place, run in enumerate(runs[:2]):
        devices = [RunDevice("node1", uuid=f"GPU-{place}-{index}", position=index) for index in (1, 0)]
        metadata_store.devices.record(run, devices, NOW)
    found = metadata_store.devices.of_runs(runs)
    assert [[device.uuid for device in found[run]] for run in runs] == [
        ["GPU-0-0", "GPU-0-1"],
        ["GPU-1-0", "GPU-1-1"],
        [],
    ]
