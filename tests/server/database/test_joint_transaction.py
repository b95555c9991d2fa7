"""`Database.in_one_transaction`: several writes that are made together or not at all."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import NameTaken

T0 = 1_800_000_000_000


def events(metadata_store: MetadataStore) -> list[str]:
    page = metadata_store.accounts.audit.page(AuditFilter())
    return [event.action for event in reversed(page)]


def test_all_writes_are_made_together(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts

    def work() -> int:
        user = accounts.users.create("ada", CLI, T0)
        assert accounts.users.by_name("ada").id == user.id  # reads see the writes before them
        team = accounts.teams.create("vision", CLI, T0, administrator=user.id)
        return team.members

    assert metadata_store.in_one_transaction(work) == 1
    assert [row.name for row in accounts.teams.all()] == ["vision"]
    assert events(metadata_store) == ["user.create", "team.create"]


def test_an_error_leaves_nothing(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    accounts.users.create("vision", CLI, T0)
    before = accounts.generation()

    def work() -> None:
        accounts.users.create("ada", CLI, T0)
        accounts.teams.create("vision", CLI, T0)

    with pytest.raises(NameTaken):
        metadata_store.in_one_transaction(work)
    assert [row.user.name for row in accounts.users.listed()] == ["vision"]
    assert events(metadata_store) == ["user.create"]
    assert accounts.generation() == before
    accounts.users.create("ada", CLI, T0)  # the next write has a transaction of its own


def test_a_write_that_fails_leaves_nothing_though_its_error_is_handled(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    accounts.users.create("bob", CLI, T0, address="bob@example.org", verified=True)

    def work() -> None:
        with pytest.raises(NameTaken):  # raised after the name was written
            accounts.users.create("ada", CLI, T0, address="bob@example.org", verified=True)
        accounts.users.create("eve", CLI, T0)

    metadata_store.in_one_transaction(work)
    assert [row.user.name for row in accounts.users.listed()] == ["bob", "eve"]
    accounts.users.create("ada", CLI, T0)


def test_one_within_another_is_part_of_it(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts

    def inner() -> None:
        accounts.users.create("ada", CLI, T0)

    def outer() -> None:
        metadata_store.in_one_transaction(inner)
        raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        metadata_store.in_one_transaction(outer)
    assert accounts.users.listed() == []
