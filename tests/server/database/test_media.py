"""Media records and the files of runs, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest

from runvitals.model.errors import UnknownRun
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.media import StoredMedia
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration

NOW = 1_790_000_000_000
A, B, C = (digit * 64 for digit in "abc")


def joined(store: MetadataStore, run: str, project: str = "digits", rank: int = 0) -> RegisteredWriter:
    (writer,) = store.writers.join(
        [WriterRegistration(run, f"media.node{rank}.{rank}.1", project, host=f"node{rank}", rank=rank)], NOW
    )
    return writer


def record(writer: RegisteredWriter, seq: int, key: str, step: float | None, **how: object) -> StoredMedia:
    item = {"kind": "image", "sha256": A, "bytes": 3, "type": "image/png"}
    media = StoredMedia(writer.run_id, writer.writer_id, seq, NOW + seq, step, key, "image", [item])
    return replace(media, **how)  # type: ignore[arg-type]


def test_records_are_stored_once_and_read_by_step(metadata_store: MetadataStore) -> None:
    writer, other = joined(metadata_store, "r"), joined(metadata_store, "r", rank=1)
    records = [record(writer, seq, "scan", step) for seq, step in enumerate([5, 1, 3, None])]
    records.append(record(other, 0, "scan", 3))
    metadata_store.media.add(records)
    metadata_store.media.add(records)
    media = metadata_store.media
    page, total = media.page(writer.run_id, "scan", None, None, 0, 10)
    assert ([each.step for each in page], total) == ([None, 1, 3, 3, 5], 5)
    assert {(each.rank, each.host) for each in page if each.step == 3} == {(0, "node0"), (1, "node1")}
    assert page[0].items == records[0].items
    page, total = media.page(writer.run_id, "scan", 2, 4, 1, 10)
    assert ([each.step for each in page], total) == ([3], 2)
    assert media.steps(writer.run_id, "scan") == [1, 3, 5]
    (key,) = media.keys(writer.run_id)
    assert (key.key, key.count, key.first_step, key.last_step) == ("scan", 5, 1, 5)


def test_saved_files_are_as_they_were_last_saved(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "r")

    def saved(seq: int, name: str, sha256: str) -> StoredMedia:
        item = {"kind": "file", "sha256": sha256, "bytes": seq, "type": "text/plain"}
        return record(writer, seq, name, 0, kind="file", items=[item])

    metadata_store.media.add([saved(1, "b.txt", A), saved(2, "b.txt", B), saved(3, "a/c", C)])
    files = metadata_store.media.files(writer.run_id)
    assert [(file.name, file.sha256, file.bytes) for file in files] == [("a/c", C, 3), ("b.txt", B, 2)]
    assert metadata_store.media.keys(writer.run_id) == []


def test_odd_texts_are_stored(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "r")
    odd = "a\0\ud800'\"<script>%_"
    item = {"kind": "text", "caption": odd, "error": "\N{PILE OF POO}"}
    metadata_store.media.add([record(writer, 1, odd, 1, items=[item])])
    (key,) = metadata_store.media.keys(writer.run_id)
    (page,), _ = metadata_store.media.page(writer.run_id, odd, None, None, 0, 10)
    assert page.key == key.key
    assert page.items == [item]


def test_records_of_unknown_runs_are_rejected(metadata_store: MetadataStore) -> None:
    writer = joined(metadata_store, "r")
    with pytest.raises(UnknownRun):
        metadata_store.media.add([record(writer, 1, "k", 1, run_id=99)])


def test_files_are_shared_within_a_project_only(metadata_store: MetadataStore) -> None:
    files = metadata_store.stored_files
    first, two, foreign = (
        joined(metadata_store, name, project).run_id
        for name, project in (("one", "digits"), ("two", "digits"), ("foreign", "theirs"))
    )
    files.add(first, StoredFile(A, 3, "image/png"), NOW)
    assert files.share(two, [A, B]) == {A}
    assert files.share(foreign, [A, B]) == set()
    assert files.of_run(two, A) == StoredFile(A, 3, "image/png")
    assert files.of_run(foreign, A) is None
    files.add(foreign, StoredFile(A, 3, "image/png"), NOW)
    assert (files.run_bytes(two), files.total_bytes()) == (3, 3)


def test_a_file_is_forgotten_with_the_last_run_that_has_it(metadata_store: MetadataStore) -> None:
    files, runs = metadata_store.stored_files, metadata_store.runs
    first, two = joined(metadata_store, "one").run_id, joined(metadata_store, "two").run_id
    files.add(first, StoredFile(A, 3, "image/png"), NOW)
    files.add(two, StoredFile(A, 3, "image/png"), NOW)
    files.add(two, StoredFile(B, 3, "image/png"), NOW)
    runs.delete([two], NOW)
    assert files.forget_unused(10) == []  # it may be restored
    runs.purge([two], NOW)
    assert files.forget_unused(10) == [B]
    assert files.known([A, B]) == {A}
    runs.delete([first], NOW)
    runs.purge([first], NOW)
    assert files.forget_unused(10) == [A]
    assert metadata_store.media.keys(first) == []
