"""Panels, guests and shares with a metadata store in PostgreSQL; the other tests of reports use SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.accounts_server import AccountsServer, accounts_server
from tests.server.conftest import beginning
from tests.server.database.conftest import address, empty, postgresql
from tests.server.reports.test_frozen import (
    test_a_copy_of_a_report_has_the_frozen_values,
    test_a_frozen_panel_stays_as_it_was,
)
from tests.server.reports.test_guests import (
    test_a_guest_sees_of_other_projects_what_the_maker_may_read_now,
    test_links_end,
    test_switching_public_links_off_revokes_them,
)
from tests.server.reports.test_panel_data import (
    test_chosen_runs_in_their_order_with_colours,
    test_groups_are_shown_as_one_run,
    test_lines_of_the_runs_that_match,
    test_what_may_not_be_read_tells_nothing,
)
from tests.server.reports.test_shares import test_shares_are_listed_changed_and_recorded

__all__ = [
    "address",
    "empty",
    "postgresql",
    "test_a_copy_of_a_report_has_the_frozen_values",
    "test_a_frozen_panel_stays_as_it_was",
    "test_a_guest_sees_of_other_projects_what_the_maker_may_read_now",
    "test_chosen_runs_in_their_order_with_colours",
    "test_groups_are_shown_as_one_run",
    "test_lines_of_the_runs_that_match",
    "test_links_end",
    "test_shares_are_listed_changed_and_recorded",
    "test_switching_public_links_off_revokes_them",
    "test_what_may_not_be_read_tells_nothing",
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
