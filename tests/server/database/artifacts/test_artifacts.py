"""Artifacts in the metadata store: versions, aliases, manifests, lineage, and what is removed when."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import Connection

from runvitals.model.durations import DAY_MS
from runvitals.server.artifacts.storage.artifact_store import ArtifactStore
from runvitals.server.artifacts.storage.links import add_link
from runvitals.server.artifacts.storage.protection import NOBODY
from runvitals.server.artifacts.storage.rows import ArtifactConflict, Entry, NewVersion, UnknownArtifact
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import ProjectOwner
from runvitals.store.errors import NameTaken
from tests.server.database.artifacts.making import T0, draft, keep, logged, manifest_digest, md5, new_project
from tests.server.database.runs import made


@pytest.fixture
def project_id(metadata_store: MetadataStore) -> int:
    return new_project(metadata_store)


@pytest.fixture
def artifacts(metadata_store: MetadataStore) -> ArtifactStore:
    return metadata_store.artifacts


def test_versions_count_up_and_the_newest_is_the_latest(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    first = logged(metadata_store, project_id, {"a": b"1"}, aliases=("best",))
    second = logged(metadata_store, project_id, {"a": b"2"})
    assert (first.version, second.version, second.files, second.bytes) == (0, 1, 1, 1)
    members = {}
    for name in ("mnist", "mnist:latest", "mnist:best", "mnist:v0", "mnist:v7", "mnist:none", "other"):
        member = artifacts.collections.member(project_id, name)
        members[name] = None if member is None else (member.number, member.aliases)
    assert members == {
        "mnist": (1, ("latest",)),
        "mnist:latest": (1, ("latest",)),
        "mnist:best": (0, ("best",)),
        "mnist:v0": (0, ("best",)),
        "mnist:v7": None,
        "mnist:none": None,
        "other": None,
    }


def test_the_same_content_is_the_same_version(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    """Also while it is a draft: two processes that log the same complete one version."""
    version = draft(metadata_store, project_id, {"a": b"1"})
    other = draft(metadata_store, project_id, {"a": b"1"}, aliases=("best",))
    assert version.id == other.id
    assert artifacts.versions.commit(version.id, T0).version == 0
    assert artifacts.versions.commit(version.id, T0).version == 0
    logged(metadata_store, project_id, {"a": b"2"})
    again = draft(metadata_store, project_id, {"a": b"1"}, aliases=("old", "latest"))
    assert (again.id, again.state) == (version.id, "committed")
    member = artifacts.collections.member(project_id, "mnist")
    assert member is not None
    assert (member.number, member.aliases) == (0, ("best", "latest", "old"))


def test_a_draft_that_lacks_a_content_or_has_another_digest_is_not_committed(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    digest = manifest_digest({"a": md5(b"1")})
    new = NewVersion(project_id, "dataset", "mnist", digest)
    lacking = artifacts.versions.begin(new, T0)
    artifacts.entries.put(lacking.id, [Entry("a", md5(b"1"), 1)])
    with pytest.raises(ArtifactConflict, match="the content of 'a' was not uploaded"):
        artifacts.versions.commit(lacking.id, T0)
    keep(metadata_store, project_id, b"1")
    keep(metadata_store, project_id, b"2")
    wrong = artifacts.versions.begin(new, T0)
    assert wrong.id != lacking.id
    artifacts.entries.put(wrong.id, [Entry("a", md5(b"2"), 1)])
    with pytest.raises(ArtifactConflict, match="digest"):
        artifacts.versions.commit(wrong.id, T0)
    right = artifacts.versions.begin(new, T0)
    artifacts.entries.put(right.id, [Entry("a", md5(b"1"), 1)])
    assert artifacts.versions.commit(right.id, T0).version == 0
    with pytest.raises(ArtifactConflict, match="cannot be changed"):
        artifacts.entries.put(right.id, [Entry("b", md5(b"1"), 1)])


def test_a_content_of_another_project_is_not_to_be_had(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    other = new_project(metadata_store, "letters")
    keep(metadata_store, other, b"secret")
    assert artifacts.contents.known(project_id, [md5(b"secret")], T0) == set()
    new = NewVersion(project_id, "dataset", "mnist", manifest_digest({"a": md5(b"secret")}))
    version = artifacts.versions.begin(new, T0)
    artifacts.entries.put(version.id, [Entry("a", md5(b"secret"), 6)])
    with pytest.raises(ArtifactConflict, match="not uploaded"):
        artifacts.versions.commit(version.id, T0)
    assert artifacts.contents.known(other, [md5(b"secret")], T0) == {md5(b"secret")}


def test_an_incremental_version_adds_to_its_base(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    base = logged(metadata_store, project_id, {"a": b"1", "b": b"2"})
    part = draft(metadata_store, project_id, {"b": b"3", "c": b"4"})
    artifacts.entries.begin(part.id, "incremental", base.id, T0)
    artifacts.entries.put(part.id, [Entry("b", md5(b"3"), 1), Entry("c", md5(b"4"), 1)])
    version = artifacts.versions.commit(part.id, T0)
    contents = {"a": md5(b"1"), "b": md5(b"3"), "c": md5(b"4")}
    assert {entry.path: entry.digest for entry in artifacts.entries.all(version.id)} == contents
    assert (version.digest, version.files) == (manifest_digest(contents), 3)
    other = logged(metadata_store, new_project(metadata_store, "letters"), {"a": b"1"})
    new = draft(metadata_store, project_id, {"c": b"5"})
    with pytest.raises(ArtifactConflict, match="in this project"):
        artifacts.entries.begin(new.id, "incremental", other.id, T0)


def test_references_need_no_content(artifacts: ArtifactStore, project_id: int) -> None:
    digest = manifest_digest({"a": "etag"})
    version = artifacts.versions.begin(NewVersion(project_id, "dataset", "far", digest), T0)
    entry = Entry("a", "etag", 9, "s3://bucket/a", extra={"versionID": "7"})
    artifacts.entries.put(version.id, [entry])
    assert artifacts.versions.commit(version.id, T0).bytes == 9
    assert artifacts.entries.get(version.id, "a") == entry


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../a",
        "a/../b",
        "a//b",
        "a/",
        "a\nb",
        "a\x00",
        "C:/a",
        "a\\..\\b",
        "\ud800",
        "é" * 600,
    ],
)
def test_hostile_paths_are_refused(artifacts: ArtifactStore, project_id: int, path: str) -> None:
    version = artifacts.versions.begin(NewVersion(project_id, "dataset", "mnist", "d"), T0)
    with pytest.raises(ValueError, match="invalid path"):
        artifacts.entries.put(version.id, [Entry(path, md5(b""), 0)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a/b"},
        {"name": ".."},
        {"name": "x" * 129},
        {"type": "a:b"},
        {"aliases": ("v3",)},
        {"aliases": ("a/b",)},
        {"aliases": tuple(map(str, range(101)))},
        {"tags": ("",)},
        {"metadata": {"a": float("nan")}},
        {"metadata": {"a": "x" * (1 << 20)}},
        {"description": "x" * 70_000},
        {"ttl_s": 1 << 63},
        {"digest": "a\nb"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_invalid_versions_are_refused(
    artifacts: ArtifactStore, project_id: int, wrong: dict[str, object]
) -> None:
    values = {"type": "dataset", "name": "mnist", "digest": "d", **wrong}
    with pytest.raises(ValueError, match=r"invalid|expected at most|JSON compliant|limits"):
        artifacts.versions.begin(NewVersion(project_id, **values), T0)  # type: ignore[arg-type]
    assert artifacts.collections.of_project(project_id, None, 0, 10) == ([], 0)


def test_a_name_has_one_type(metadata_store: MetadataStore, project_id: int) -> None:
    logged(metadata_store, project_id, {"a": b"1"})
    with pytest.raises(ArtifactConflict, match="have the type 'dataset', not 'model'"):
        draft(metadata_store, project_id, {"a": b"1"}, type="model")


def test_what_is_said_about_a_version_can_be_changed(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    version = logged(metadata_store, project_id, {"a": b"1"}, tags=("x", "y"))
    changed = artifacts.versions.change(
        version.id, T0 + 1, "better", {"acc": 0.9}, 60, add_tags=["z"], remove_tags=["x"]
    )
    assert (changed.description, changed.metadata, changed.ttl_s) == ("better", {"acc": 0.9}, 60)
    assert (changed.tags, changed.updated_ms) == (("y", "z"), T0 + 1)
    assert artifacts.versions.change(version.id, T0 + 1, ttl_s=-1).ttl_s is None


def test_aliases_move(metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int) -> None:
    first = logged(metadata_store, project_id, {"a": b"1"})
    second = logged(metadata_store, project_id, {"a": b"2"})
    collection_id = first.collection.id
    artifacts.collections.add_aliases(collection_id, first.id, ["best", "prod"], T0)
    artifacts.collections.add_aliases(collection_id, second.id, ["best"], T0)
    artifacts.collections.remove_aliases(collection_id, first.id, ["prod", "best"], T0)
    shown = {m.number: m.aliases for m in artifacts.collections.members(collection_id, 0, 10, True)}
    assert shown == {0: (), 1: ("best", "latest")}
    assert artifacts.collections.aliases(collection_id) == ["best", "latest"]
    with pytest.raises(ValueError, match="invalid alias 'v1'"):
        artifacts.collections.add_aliases(collection_id, first.id, ["v1"], T0)
    with pytest.raises(UnknownArtifact):
        artifacts.collections.add_aliases(collection_id, 10_000, ["x"], T0)


def test_a_number_is_not_used_twice_and_the_one_before_becomes_the_latest(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    logged(metadata_store, project_id, {"a": b"1"})
    second = logged(metadata_store, project_id, {"a": b"2"})
    with pytest.raises(ArtifactConflict, match="has the aliases latest"):
        artifacts.versions.delete(second.id, T0)
    assert artifacts.versions.delete(second.id, T0, with_aliases=True).state == "deleted"
    latest = artifacts.collections.member(project_id, "mnist")
    assert latest is not None
    assert latest.number == 0
    assert artifacts.collections.member(project_id, "mnist:v1") is None
    assert logged(metadata_store, project_id, {"a": b"2"}).version == 2


def test_a_portfolio_has_versions_of_several_sequences(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    version = logged(metadata_store, project_id, {"a": b"1"}, name="one", type="model")
    two = logged(metadata_store, project_id, {"a": b"2"}, name="two", type="model")
    artifacts.links.link(version.id, project_id, "best models", ["prod"], T0)
    linked = artifacts.links.link(two.id, project_id, "best models", [], T0)
    again = artifacts.links.link(two.id, project_id, "best models", ["new"], T0)
    assert (linked.number, again.number, again.aliases) == (1, 1, ("latest", "new"))
    prod = artifacts.collections.member(project_id, "best models:prod")
    assert prod is not None
    assert (prod.version.id, prod.number, prod.version.collection.name) == (version.id, 0, "one")
    names = [m.collection.name for m in artifacts.collections.memberships([version.id])[version.id]]
    assert names == ["one", "best models"]
    artifacts.links.unlink(version.id, prod.collection.id, T0)
    assert artifacts.collections.member(project_id, "best models:prod") is None
    assert artifacts.versions.get(version.id).state == "committed"
    with pytest.raises(ArtifactConflict):
        artifacts.links.unlink(version.id, version.collection.id, T0)
    with pytest.raises(ArtifactConflict, match="is a sequence"):
        artifacts.links.link(two.id, project_id, "one", [], T0)


def test_collections_are_listed_renamed_and_deleted(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    for name, kind in (("a", "dataset"), ("b", "model"), ("c", "model")):
        logged(metadata_store, project_id, {"a": b"1"}, name=name, type=kind)
    draft(metadata_store, project_id, {"a": b"1"}, name="d", type="model")
    collections, total = artifacts.collections.of_project(project_id, "model", 1, 1)
    assert ([collection.name for collection in collections], total) == (["c"], 2)
    assert list(artifacts.collections.types(project_id)) == ["dataset", "model"]
    changed = artifacts.collections.change(collections[0].id, T0, "e", "new", "network", ["x"])
    assert (changed.name, changed.description, changed.type) == ("e", "new", "network")
    with pytest.raises(NameTaken):
        artifacts.collections.change(collections[0].id, T0, "b")
    artifacts.collections.delete(collections[0].id)
    assert artifacts.collections.named(project_id, "e") is None
    with pytest.raises(UnknownArtifact):
        artifacts.collections.get(collections[0].id)


def test_runs_make_and_use_versions(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    maker, user = made(metadata_store, "maker"), made(metadata_store, "user")
    version = logged(metadata_store, project_id, {"a": b"1"}, run_id=maker)
    for _ in range(2):
        artifacts.lineage.add(version.id, user, "input", T0)
    assert artifacts.lineage.users(version.id, 10) == [user]
    assert [one.id for one in artifacts.versions.made_by(maker, 0, 10)[0]] == [version.id]
    assert ([one.id for one in artifacts.lineage.used_by(user, 0, 10)[0]]) == [version.id]
    open_draft = draft(metadata_store, project_id, {"a": b"2"})
    with pytest.raises(ArtifactConflict):
        artifacts.lineage.add(open_draft.id, user, "", T0)
    metadata_store.runs.delete([maker, user], T0)
    metadata_store.runs.purge([maker, user], T0)
    assert artifacts.versions.get(version.id).run_id is None
    assert artifacts.lineage.users(version.id, 10) == []


def test_contents_are_kept_while_a_version_or_a_fresh_draft_needs_them(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    version = logged(metadata_store, project_id, {"a": b"kept"})
    keep(metadata_store, project_id, b"uploaded only")
    later = T0 + 8 * DAY_MS
    assert artifacts.contents.known(project_id, [md5(b"uploaded only")], later - DAY_MS)
    artifacts.remove_expired(later)
    assert metadata_store.stored_files.forget_unused(10) == []
    assert artifacts.contents.project_bytes(project_id) == len(b"kept" + b"uploaded only")
    later += 8 * DAY_MS
    artifacts.remove_expired(later)
    assert metadata_store.stored_files.forget_unused(10) == [hashlib.sha256(b"uploaded only").hexdigest()]
    artifacts.versions.delete(version.id, later, with_aliases=True)
    artifacts.remove_expired(later)
    assert metadata_store.stored_files.forget_unused(10) == [hashlib.sha256(b"kept").hexdigest()]


def test_abandoned_drafts_and_expired_versions_are_deleted(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    abandoned = draft(metadata_store, project_id, {"a": b"1"})
    short = logged(metadata_store, project_id, {"a": b"2"}, ttl_s=3600)
    linked = logged(metadata_store, project_id, {"a": b"3"}, ttl_s=3600)
    forever = logged(metadata_store, project_id, {"a": b"4"}, ttl_s=-2)
    artifacts.links.link(linked.id, project_id, "best", [], T0)
    assert artifacts.remove_expired(T0 + 3_600_000) == 0
    assert artifacts.remove_expired(T0 + 3_600_001) == 1
    assert artifacts.remove_expired(T0 + 8 * DAY_MS) == 1
    states = [artifacts.versions.get(version.id).state for version in (abandoned, short, linked, forever)]
    assert states == ["deleted", "deleted", "committed", "committed"]


def test_a_collection_has_a_time_to_live(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    short = logged(metadata_store, project_id, {"a": b"1"}, ttl_s=60)
    usual = logged(metadata_store, project_id, {"a": b"2"})
    linked = logged(metadata_store, project_id, {"a": b"3"})
    forever = logged(metadata_store, project_id, {"a": b"4"}, ttl_s=0)
    artifacts.links.link(linked.id, project_id, "best", [], T0)
    collection, expiring = artifacts.collections.set_time_to_live(usual.collection.id, 3600)
    assert (collection.ttl_s, expiring) == (3600, 2)
    versions = (short, usual, linked, forever)
    found = artifacts.versions.expiries(version.id for version in versions)
    assert found == {short.id: T0 + 60_000, usual.id: T0 + 3_600_000}
    (size,) = artifacts.collections.sizes(project_id)
    assert (size.expiring_bytes, size.expires_ms) == (2, T0 + 60_000)
    assert artifacts.remove_expired(T0 + 3_600_001) == 2
    states = [artifacts.versions.get(version.id).state for version in versions]
    assert states == ["deleted", "deleted", "committed", "committed"]
    artifacts.collections.set_time_to_live(usual.collection.id, None)
    best = artifacts.collections.named(project_id, "best")
    assert best is not None
    artifacts.links.unlink(linked.id, best.id, T0)
    assert artifacts.remove_expired(T0 + 8 * DAY_MS) == 0


def test_what_was_deleted_meanwhile_is_not_linked(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    version = logged(metadata_store, project_id, {"a": b"1"})
    artifacts.versions.delete(version.id, T0, with_aliases=True)

    def link(connection: Connection) -> None:
        add_link(connection, version.collection.id, version.id, T0, NOBODY)

    with pytest.raises(ArtifactConflict, match="is deleted: it cannot be linked"):
        artifacts.links._database.write(link)


def test_a_large_manifest_is_stored_and_read_in_parts(
    artifacts: ArtifactStore, project_id: int, kind: str
) -> None:
    digest = md5(b"")
    count = 100_000 if kind == "sqlite" else 5_000  # more take half a minute there
    entries = {f"{number:06}.bin": digest for number in range(count)}
    version = artifacts.versions.begin(
        NewVersion(project_id, "dataset", "large", manifest_digest(entries)), T0
    )
    artifacts.entries.put(version.id, (Entry(path, digest, 1, "s3://b/" + path) for path in entries))
    assert artifacts.versions.commit(version.id, T0).files == count
    last = list(entries)[-3:]
    assert [e.path for e in artifacts.entries.page(version.id, last[0], 10)] == last[1:]


def test_what_artifacts_take_counts_once_in_the_storage_of_a_team(
    metadata_store: MetadataStore, artifacts: ArtifactStore
) -> None:
    accounts = metadata_store.accounts
    owner = ProjectOwner(accounts.users.create("ada", CLI, T0, address="ada@example.org").entity_id)
    assert owner.entity_id is not None
    first = metadata_store.projects.ensure("first", owner, T0)
    second = metadata_store.projects.ensure("second", owner, T0)
    for project_id, other in ((first, b"x1"), (second, b"x2")):
        logged(metadata_store, project_id, {"a": b"both", "b": b"both", "c": other})
    stored = {number: storage.artifacts for number, storage in accounts.file_storage(owner.entity_id).items()}
    assert stored == {first: len(b"both") + 2, second: 2}
    model = StoredFile(hashlib.sha256(b"model").hexdigest(), 5, "text/plain")  # of no run
    metadata_store.mlflow_files.put(second, "models/m-1/artifacts/model.bin", model, None, T0)
    assert accounts.file_storage(owner.entity_id)[second].artifacts == 2 + 5


def test_a_file_is_found_by_its_digest_in_its_project_only(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    logged(metadata_store, project_id, {"a": b"1"})
    newer = logged(metadata_store, project_id, {"b": b"1", "c": b"2"})
    other = new_project(metadata_store, "letters")
    assert artifacts.entries.with_digest(project_id, md5(b"1")) == (newer.id, "b")
    assert artifacts.entries.with_digest(project_id, md5(b"1"), "mnist") == (newer.id, "b")
    assert artifacts.entries.with_digest(project_id, md5(b"1"), "none") is None
    assert artifacts.entries.with_digest(other, md5(b"1")) is None
    artifacts.links.link(newer.id, other, "linked", [], T0)
    assert artifacts.entries.with_digest(other, md5(b"1"), "linked") == (newer.id, "b")


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_texts_that_no_database_has_are_not_found(artifacts: ArtifactStore, text: str) -> None:
    collections, entries = artifacts.collections, artifacts.entries
    assert collections.named(1, text) is None
    assert collections.named(1, "a", text) is None
    assert collections.member_of(1, text) is None
    assert collections.of_project(1, text, 0, 10) == ([], 0)
    assert collections.with_digest(1, text) == []
    assert entries.page(1, text, 10) == []
    assert entries.get(1, text) is None
    assert entries.with_digest(1, text, text) is None
    assert entries.in_version(1, text) is None
    assert artifacts.versions.with_client_id(text) is None


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([Entry("a", md5(b"abc"), 1 << 60)], "invalid size 1152921504606846976 of 'a'; expected 0 to"),
        ([Entry("a", md5(b"abc"), 4)], "the size of 'a' is 3 bytes, not 4"),
        ([Entry("a", md5(b"abc"), -1)], "invalid size -1 of 'a'"),
        ([Entry("a", md5(b"abc"), 3), Entry("a", md5(b"abc"), 3)], "'a' occurs more than once"),
        ([Entry("a", md5(b"abc"), 3), Entry("a", "x", 3, "s3://b/a")], "'a' occurs more than once"),
        ([Entry("b", md5(b"abc"), 3), Entry("a/../b", md5(b"abc"), 3)], "expected a relative path without"),
    ],
)
def test_a_refused_manifest_leaves_nothing_to_commit(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int, entries: list[Entry], why: str
) -> None:
    keep(metadata_store, project_id, b"abc")
    for announced in (manifest_digest({}), manifest_digest({entry.path: entry.digest for entry in entries})):
        new = NewVersion(project_id, "dataset", "mnist", announced)
        begun = artifacts.versions.begin(new, T0)
        artifacts.entries.begin(begun.id, "full", None, T0)
        with pytest.raises(ValueError, match=why):
            artifacts.entries.put(begun.id, entries)
        assert list(artifacts.entries.all(begun.id)) == []
        with pytest.raises(ArtifactConflict, match="the manifest was not received, or was refused"):
            artifacts.versions.commit(begun.id, T0)


def test_a_draft_without_a_manifest_is_not_committed_but_an_empty_manifest_is(
    artifacts: ArtifactStore, project_id: int
) -> None:
    new = NewVersion(project_id, "dataset", "mnist", manifest_digest({}))
    with pytest.raises(ArtifactConflict, match="the manifest was not received"):
        artifacts.versions.commit(artifacts.versions.begin(new, T0).id, T0)
    begun = artifacts.versions.begin(new, T0)
    assert begun.files == 0
    artifacts.entries.put(begun.id, [])
    assert artifacts.versions.commit(begun.id, T0).files == 0


@pytest.mark.parametrize("files", [["a", "a/b"], ["a/b/c", "a-b", "a/b"], ["a", r"a\b"]])
def test_a_path_is_a_file_or_a_folder(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int, files: list[str]
) -> None:
    both = draft(metadata_store, project_id, dict.fromkeys(files, b"abc"))
    with pytest.raises(ArtifactConflict, match=r"'a(/b)?' is a file and a folder of the artifact"):
        artifacts.versions.commit(both.id, T0)
    logged(metadata_store, project_id, dict.fromkeys(["a-b", "a.b", "b/a"], b"abc"))


def test_the_files_of_a_base_count_too(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    base = logged(metadata_store, project_id, {"a": b"1"})
    part = draft(metadata_store, project_id, {"a/b": b"2"})
    artifacts.entries.begin(part.id, "incremental", base.id, T0)
    artifacts.entries.put(part.id, [Entry("a/b", md5(b"2"), 1)])
    with pytest.raises(ArtifactConflict, match="'a' is a file and a folder"):
        artifacts.versions.commit(part.id, T0)


def test_sizes_are_those_of_the_contents_and_have_a_sum(
    metadata_store: MetadataStore, artifacts: ArtifactStore, project_id: int
) -> None:
    unsized = draft(metadata_store, project_id, {"a": b"abc"})
    artifacts.entries.put(unsized.id, [Entry("a", md5(b"abc"))])
    assert artifacts.versions.commit(unsized.id, T0).bytes == 3
    huge = [Entry(name, "x", 1 << 53, f"s3://bucket/{name}") for name in ("a", "b")]
    new = NewVersion(project_id, "dataset", "huge", manifest_digest({"a": "x", "b": "x"}))
    begun = artifacts.versions.begin(new, T0)
    artifacts.entries.put(begun.id, huge)
    with pytest.raises(ArtifactConflict, match="18,014,398,509,481,984 bytes; at most 9,007,199,254,740,992"):
        artifacts.versions.commit(begun.id, T0)
