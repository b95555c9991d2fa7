"""The tables of reports, on SQLite and on PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.outbox import Notification
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.reports.storage.comments import NewComment
from runvitals.server.reports.storage.readers import ReportSelection
from runvitals.server.reports.storage.report_table import ReportTable
from runvitals.server.reports.storage.rows import ReportAuthor, ReportEdited, ReportRow

NOW = 1_000_000_000_000
SHA256 = "ab" * 32


@pytest.fixture
def ada(metadata_store: MetadataStore) -> int:
    return metadata_store.accounts.users.create("ada", CLI, NOW).id


@pytest.fixture
def report(metadata_store: MetadataStore, ada: int) -> ReportRow:
    accounts = metadata_store.accounts
    own_space = accounts.users.get(ada).entity_id
    project = accounts.owned_projects.create(own_space, "digits", CLI, NOW)
    return reports_of(metadata_store).create(project.id, document("One"), ReportAuthor(ada), NOW)


def reports_of(metadata_store: MetadataStore) -> ReportTable:
    return metadata_store.accounts.reports


def document(*texts: str, title: str = "Rates 50%") -> dict[str, Any]:
    blocks = [{"id": f"b{place:03}", "kind": "text", "text": text} for place, text in enumerate(texts)]
    return {"title": title, "description": "", "blocks": blocks}


def test_changes_are_merged_or_refused(metadata_store: MetadataStore, report: ReportRow, ada: int) -> None:
    reports, author = reports_of(metadata_store), ReportAuthor(ada)
    reports.save(report.id, 1, document("One", "Two"), author, NOW + 1)
    saved = reports.save(report.id, 1, document("ONE"), author, NOW + 2)
    assert [block["text"] for block in saved.document["blocks"]] == ["ONE", "Two"]
    assert (saved.row.head_revision, saved.others) == (3, ["b001"])
    with pytest.raises(ReportEdited) as edited:
        reports.save(report.id, 1, document("oNe"), author, NOW + 3)
    assert [conflict.id for conflict in edited.value.conflicts] == ["b000"]
    assert reports.get(report.id).head_revision == 3


def test_old_versions_are_removed(metadata_store: MetadataStore, report: ReportRow, ada: int) -> None:
    reports = reports_of(metadata_store)
    for revision in range(1, 70):
        reports.save(report.id, revision, document(str(revision)), ReportAuthor(ada), NOW + revision)
    assert [version.revision for version in reports.versions(report.id)] == [70]
    assert reports.kept_document(report.id, 20) is None
    assert reports.kept_document(report.id, 21) == document("20")


def test_lists_stars_and_searches(metadata_store: MetadataStore, report: ReportRow, ada: int) -> None:
    readers = metadata_store.accounts.report_readers
    for _ in range(2):
        readers.star(report.id, ada, True, NOW)
        readers.follow(report.id, ada, True, NOW)
    assert readers.marks(ada).starred == readers.marks(ada).followed == {report.id}
    assert readers.followers(report.id) == [ada]

    def listed(selection: ReportSelection, user_id: int | None = ada) -> list[int]:
        return [row.id for row in readers.selected(selection, user_id)]

    for selection in (
        ReportSelection(),
        ReportSelection("mine", projects=[]),
        ReportSelection("starred"),
        ReportSelection("followed", text="50% rates"),
        ReportSelection("team", entity="ada"),
    ):
        assert listed(selection) == [report.id]
    for selection in (ReportSelection("shared"), ReportSelection(text="5_%"), ReportSelection(entity="bob")):
        assert listed(selection) == []
    assert listed(ReportSelection(), None) == []
    reports_of(metadata_store).publish(report.id, 1, NOW)
    assert listed(ReportSelection(projects=[report.project_id]), None) == [report.id]
    assert listed(ReportSelection(projects=[]), None) == []


def test_comments_and_reactions(metadata_store: MetadataStore, report: ReportRow, ada: int) -> None:
    comments = metadata_store.accounts.report_comments
    first = comments.add(report.id, NewComment("Why?", block="b000"), ada, NOW)
    reply = comments.add(report.id, NewComment("So", reply_to=first.id), ada, NOW + 1)
    assert (reply.reply_to, reply.block, reply.author) == (first.id, "b000", "ada")
    for _ in range(2):
        comments.react(first, ada, "👍", True, NOW)
    comments.resolve(first, ada, NOW)
    shown, _ = comments.of_report(report.id)
    assert (shown.reactions, shown.resolved_by) == ((("👍", ada),), "ada")
    comments.remove(first)
    emptied, kept = comments.thread(reply)
    assert (emptied.text, emptied.author, emptied.reactions, kept.text) == ("", None, (), "So")


def test_files_stay_while_a_report_has_them(
    metadata_store: MetadataStore, report: ReportRow, ada: int
) -> None:
    files, stored = metadata_store.accounts.report_files, metadata_store.stored_files
    files.add(report.id, StoredFile(SHA256, 190, "image/webp"), "image", ada, NOW)
    assert stored.forget_unused(10) == []
    [storage] = files.storage(report.entity_id)
    assert (storage.project, storage.bytes, storage.trash) == ("digits", 190, 0)
    reports_of(metadata_store).delete(report.id, NOW)
    assert files.storage(report.entity_id)[0].trash == 190
    assert reports_of(metadata_store).purge_trashed(NOW + 1) == 1
    assert stored.forget_unused(10) == [SHA256]


def test_pins_are_in_the_chosen_order(metadata_store: MetadataStore, report: ReportRow, ada: int) -> None:
    pins = metadata_store.accounts.report_pins
    other = reports_of(metadata_store).create(report.project_id, document("1"), ReportAuthor(ada), NOW)
    for chosen in ([other.id, report.id], [report.id, other.id, report.id]):
        pins.put(report.entity_id, chosen)
        assert [row.id for row in pins.of_entity(report.entity_id)] == list(dict.fromkeys(chosen))


def test_what_waits_for_a_digest_is_joined(metadata_store: MetadataStore, ada: int) -> None:
    def news(text: str) -> Notification:
        return Notification(
            text, "report.commented", f"user:{ada}", "report:1", text, {}, NOW, due_ms=NOW + 9
        )

    notices, outbox = metadata_store.accounts.report_notices, metadata_store.alerts.outbox
    notices.put([news("first"), news("second")])
    assert outbox.due(NOW) == []
    [due] = outbox.due(NOW + 9)
    assert due.text == "first\n\nsecond"


def test_a_deleted_user_leaves_only_what_they_wrote(
    metadata_store: MetadataStore, report: ReportRow, ada: int
) -> None:
    accounts = metadata_store.accounts
    accounts.report_readers.star(report.id, ada, True, NOW)
    accounts.report_comments.add(report.id, NewComment("Kept"), ada, NOW)
    accounts.users.delete(ada, CLI, NOW)
    assert reports_of(metadata_store).get(report.id).author is None
    [kept] = accounts.report_comments.of_report(report.id)
    assert (kept.text, kept.author, kept.author_name) == ("Kept", None, "deleted user")
    assert accounts.report_readers.marks(ada).starred == frozenset()
