"""Ids are never assigned twice."""

from __future__ import annotations

from runvitals.server.database.issued_ids import HighestIds
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.pairing.recovery import RecoveredRun, recover
from runvitals.server.runs.storage.writer_registration import WriterRegistration

NOW = 1_790_812_800_000


def test_skip_to_skips_issued_and_lost_ids(metadata_store: MetadataStore) -> None:
    (first,) = metadata_store.writers.join([WriterRegistration("otter", "curl")], NOW)
    before = metadata_store.issued_ids.highest()
    assert before.writer >= first.writer_id
    metadata_store.runs.delete([first.run_id], NOW)
    metadata_store.runs.purge([first.run_id], NOW)
    assert metadata_store.issued_ids.highest() == before
    metadata_store.issued_ids.skip_to(HighestIds(writer=before.writer + 50, metric=before.metric + 7), 100)
    (second,) = metadata_store.writers.join([WriterRegistration("badger", "curl")], NOW)
    assert second.writer_id == before.writer + 151
    assert second.run_id > first.run_id + 100
    assert metadata_store.metrics.schema(["cpu"]).metric_ids[0] == before.metric + 108


def test_pairing_is_stored(metadata_store: MetadataStore) -> None:
    metadata_store.issued_ids.pair("abc", 1)
    metadata_store.issued_ids.pair("abc", 2)
    assert metadata_store.issued_ids.pairing() == ("abc", 2)


def test_runs_are_recovered_with_the_ids_of_their_samples(metadata_store: MetadataStore) -> None:
    highest = metadata_store.issued_ids.highest()
    lane = highest.writer + 40
    recover(metadata_store, [RecoveredRun(lane, (highest.metric + 3,), NOW, NOW + 1000)])
    run = metadata_store.runs.find(f"recovered-{lane}", NOW)
    assert run is not None
    assert (run.project, run.state, run.duration_ms) == ("recovered", "lost", 1000)
    assert [writer.lane_id for writer in metadata_store.writers.of_runs([run.id])[run.id]] == [lane]
    assert metadata_store.metrics.keys([highest.metric + 3]) == {
        highest.metric + 3: f"recovered.metric_{highest.metric + 3}"
    }
    metadata_store.issued_ids.skip_to(HighestIds(lane, highest.metric + 3), 10)
    (who,) = metadata_store.writers.join([WriterRegistration("heron", "curl")], NOW)
    assert who.writer_id > lane
