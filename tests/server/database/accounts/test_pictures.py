"""Pictures of users and teams."""

from __future__ import annotations

from sqlalchemy import text

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.metadata_store import MetadataStore

T0 = 1_800_000_000_000


def _stored(metadata_store: MetadataStore) -> int:
    count = text("SELECT count(*) FROM picture")
    return int(metadata_store.write(lambda connection: connection.execute(count).scalar_one()))


def test_a_picture_is_replaced_and_removed(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0)
    first = accounts.pictures.put(ada.entity_id, b"large", b"small", CLI, T0)
    assert (accounts.pictures.body(first, 512), accounts.pictures.body(first, 64)) == (b"large", b"small")
    second = accounts.pictures.put(ada.entity_id, b"other", b"small", CLI, T0)
    assert second != first
    assert accounts.pictures.body(first, 64) is None
    assert accounts.pictures.digests([ada.entity_id, 999]) == {ada.entity_id: second}
    assert accounts.pictures.remove(ada.entity_id, CLI, T0)
    assert not accounts.pictures.remove(ada.entity_id, CLI, T0)
    assert _stored(metadata_store) == 0
    events = accounts.audit.page(AuditFilter(action="user.update"))
    assert [event.after for event in events] == [{"picture": None}, {"picture": second}, {"picture": first}]


def test_equal_pictures_are_stored_until_nobody_has_them(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    accounts.users.create("grace", CLI, T0, org_role="admin")
    ada = accounts.users.create("ada", CLI, T0)
    team = accounts.teams.create("vision", CLI, T0)
    digests = {accounts.pictures.put(owner, b"l", b"s", CLI, T0) for owner in (ada.entity_id, team.id)}
    assert len(digests) == _stored(metadata_store) == 1
    assert accounts.pictures.put(ada.entity_id, b"l", b"s", CLI, T0) in digests
    accounts.users.delete(ada.id, CLI, T0)
    assert accounts.pictures.digests([ada.entity_id, team.id]).keys() == {team.id}
    assert accounts.pictures.remove(team.id, CLI, T0)
    assert _stored(metadata_store) == 0
