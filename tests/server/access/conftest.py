"""A server with accounts: two teams, users in several roles, and a project of each visibility."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.access.organisation import ServedOrganisation, served_organisation


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOrganisation]:
    with served_organisation(tmp_path_factory.mktemp("organisation")) as served:
        yield served
