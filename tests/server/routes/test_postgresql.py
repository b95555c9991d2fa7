"""Routes about accounts with a metadata store in PostgreSQL: tests of other modules that change and list most
tables. The others use SQLite, and the tables have tests of their own on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.conftest import beginning
from tests.server.database.conftest import address, empty, postgresql
from tests.server.organisation.routes.test_audit import test_filters_and_pages, test_who_reads_which_events
from tests.server.projects.routes.conftest import digits
from tests.server.projects.routes.test_projects import (
    test_a_project_goes_to_the_trash_and_comes_back_with_its_runs,
    test_a_transfer_ends_guest_links_and_shares,
    test_links_for_visitors,
    test_members_of_a_restricted_project,
    test_transfer_needs_both_sides_and_the_password,
    test_what_is_done_to_a_project_is_in_the_events_of_its_runs,
    test_whose_a_run_is_and_where,
)
from tests.server.routes.test_lists import full, test_every_list_comes_in_pages

__all__ = [
    "address",
    "digits",
    "empty",
    "full",
    "postgresql",
    "test_a_project_goes_to_the_trash_and_comes_back_with_its_runs",
    "test_a_transfer_ends_guest_links_and_shares",
    "test_every_list_comes_in_pages",
    "test_filters_and_pages",
    "test_links_for_visitors",
    "test_members_of_a_restricted_project",
    "test_transfer_needs_both_sides_and_the_password",
    "test_what_is_done_to_a_project_is_in_the_events_of_its_runs",
    "test_who_reads_which_events",
    "test_whose_a_run_is_and_where",
]


@pytest.fixture
def kind() -> str:
    return "postgresql"


@pytest.fixture
def server(tmp_path: Path, address: str, request: pytest.FixtureRequest) -> Iterator[AccountsServer]:
    with accounts_server(tmp_path, address) as running:
        beginning(request)(running.metadata_store)
        running.app.services.access.rights_changed()
        yield running
