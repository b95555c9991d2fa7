"""Former addresses of projects, and changes of projects, in both databases."""

from __future__ import annotations

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.project_redirects import REDIRECT_MS
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.store.errors import NameTaken

T0 = 1_700_000_000_000


@pytest.fixture
def vision(accounts: AccountStore) -> int:
    """The id of a team."""
    return accounts.teams.create("vision", CLI, T0).id


@pytest.fixture
def digits(accounts: AccountStore, vision: int) -> int:
    """The id of a project of the team."""
    return accounts.owned_projects.create(vision, "digits", CLI, T0).id


def test_every_former_name_leads_to_the_project(accounts: AccountStore, vision: int, digits: int) -> None:
    assert accounts.project_redirects.target(vision, "digits", T0) is None
    for name in ("numbers", "digits", "numerals"):
        accounts.owned_projects.update(digits, CLI, T0, name=name)
    redirects = accounts.project_redirects
    assert {name: redirects.target(vision, name, T0) for name in ("digits", "numbers", "numerals")} == {
        "digits": digits,
        "numbers": digits,
        "numerals": None,
    }
    assert redirects.target(vision + 1000, "digits", T0) is None


def test_the_last_project_of_a_name_has_the_address(accounts: AccountStore, vision: int, digits: int) -> None:
    accounts.owned_projects.update(digits, CLI, T0, name="numbers")
    second = accounts.owned_projects.create(vision, "digits", CLI, T0).id
    accounts.owned_projects.update(second, CLI, T0 + 5, name="others")
    assert accounts.project_redirects.target(vision, "digits", T0 + 5) == second


def test_addresses_are_forgotten_in_time(accounts: AccountStore, vision: int, digits: int) -> None:
    accounts.owned_projects.update(digits, CLI, T0, name="numbers")
    accounts.owned_projects.update(digits, CLI, T0 + 1, name="numerals")
    redirects = accounts.project_redirects
    assert redirects.target(vision, "digits", T0 + REDIRECT_MS - 1) == digits
    assert redirects.target(vision, "digits", T0 + REDIRECT_MS) is None
    redirects.purge(T0 + REDIRECT_MS)
    assert redirects.target(vision, "digits", T0) is None
    assert redirects.target(vision, "numbers", T0) == digits


def test_the_runs_of_a_project_that_was_given_away(
    metadata_store: MetadataStore, accounts: AccountStore, vision: int, digits: int
) -> None:
    speech = accounts.teams.create("speech", CLI, T0).id
    sender = Sender(vision, None, None)
    metadata_store.writers.join([WriterRegistration("otter-1", "m.1", "digits", sender=sender)], T0)
    redirects = accounts.project_redirects
    assert redirects.projects_of_run(vision, "otter-1", T0) == []
    accounts.owned_projects.update(digits, CLI, T0, name="numbers")
    accounts.project_members.transfer(digits, speech, CLI, T0)
    assert redirects.target(vision, "numbers", T0) == redirects.target(vision, "digits", T0) == digits
    assert redirects.projects_of_run(vision, "otter-1", T0) == [digits]
    assert redirects.projects_of_run(vision, "otter-2", T0) == []
    assert redirects.projects_of_run(vision, "otter-1", T0 + REDIRECT_MS) == []
    metadata_store.projects.rename(digits, "letters", T0)
    assert redirects.target(speech, "numbers", T0) == digits


def test_a_project_that_is_removed_for_good_leaves_no_address(
    accounts: AccountStore, vision: int, digits: int
) -> None:
    accounts.owned_projects.update(digits, CLI, T0, name="numbers")
    accounts.owned_projects.trash(digits, CLI, T0)
    accounts.owned_projects.purge(digits, CLI, T0)
    assert accounts.project_redirects.target(vision, "digits", T0) is None


def test_a_change_that_fails_changes_nothing(accounts: AccountStore, vision: int, digits: int) -> None:
    letters = accounts.owned_projects.create(vision, "letters", CLI, T0)
    before, events = accounts.owned_projects.get(digits), len(accounts.audit.page(AuditFilter(), 100))
    with pytest.raises(NameTaken, match="'letters' already exists"):
        accounts.owned_projects.update(
            digits, CLI, T0, name="letters", description="x", visibility="restricted"
        )
    assert accounts.owned_projects.get(digits) == before
    assert accounts.project_redirects.target(vision, "digits", T0) is None
    assert len(accounts.audit.page(AuditFilter(), 100)) == events
    with pytest.raises(NameTaken, match="'letters' already exists"):
        accounts.owned_projects.create(vision, "letters", CLI, T0)
    accounts.owned_projects.trash(letters.id, CLI, T0)
    with pytest.raises(NameTaken, match="a deleted project has the name 'letters': restore it"):
        accounts.owned_projects.create(vision, "letters", CLI, T0)
