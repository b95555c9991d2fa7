"""From a table for each kind of destination to one for all, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from runvitals.server.alerts.storage.destinations import StoredDestination
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, migrate
from runvitals.server.metadata_store import open_metadata_store
from tests.server.database.conftest import NewAddress

_SEALED = "'\\x01'"
_ROWS = (
    "INSERT INTO entity (id, kind, name, created_ms) VALUES (1, 'team', 'vision', 1), (8, 'user', 'ada', 1)",
    """INSERT INTO user_account (id, entity_id, display_name, profile, state, org_role, access, billing_role,
        created_ms, created_via)
        VALUES (2, 8, 'Ada', '{}', 'active', 'member', 'full', 'none', 1, 'cli')""",
    """INSERT INTO team (entity_id, display_name, description, default_visibility, hidden, members_invite,
        public_projects, public_links, code_saving, kind, profile, join_by_domain, recommend_by_domain)
        VALUES (1, '', '', 'team', false, false, false, false, false, 'work', '{}', 'off', false)""",
    f"""INSERT INTO team_secret (id, team_id, name, sealed, created_ms, changed_ms)
        VALUES (4, 1, 'KEY', {_SEALED}, 1, 1)""",
    """INSERT INTO team_webhook (team_id, name, url, signing_secret_id, payload, enabled, created_by,
        created_ms) VALUES (1, 'ci', 'https://ci.example', 4, '{"a": "ä"}', false, 2, 5)""",
    f"""INSERT INTO slack_destination (team_id, channel, sealed, shown, created_ms, disabled_ms)
        VALUES (1, '#gone', {_SEALED}, '', 1, NULL), (1, '#runs', {_SEALED}, 'hooks', 6, 7),
        (1, '#last', {_SEALED}, '', 1, NULL)""",
    "DELETE FROM slack_destination WHERE channel IN ('#gone', '#last')",
    f"""INSERT INTO apprise_destination (team_id, name, sealed, shown, created_by, created_ms)
        VALUES (1, 'phone', {_SEALED}, 'ntfy', 2, 8)""",
    f"INSERT INTO user_slack (user_id, sealed, shown, created_ms) VALUES (2, {_SEALED}, 'hooks', 9)",
)
_TABLES = ("team_webhook", "slack_destination", "apprise_destination", "user_slack")
HOOK = {
    "url": "https://ci.example",
    "access_secret": None,
    "signing_secret": "KEY",
    "payload": '{"a": "ä"}',
    "enabled": False,
}


@pytest.fixture
def address(empty: NewAddress) -> str:
    return empty()


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    database = Database(address)
    migrate(database)
    downgrade(database, "0041")
    for statement in _ROWS:
        database.write(lambda connection, s=statement: connection.execute(text(s)))
    yield database
    database.close()


def rows(database: Database) -> dict[str, list[dict[str, Any]]]:
    with database.read() as connection:
        return {
            table: [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
            for table in _TABLES
        }


def test_destinations_keep_their_numbers(database: Database, address: str) -> None:
    migrate(database)
    with open_metadata_store(address) as store:
        destinations = store.alerts.destinations
        [hook] = destinations.of_team("webhook", 1)
        assert hook == StoredDestination("webhook", 1, "ci", HOOK, 5)
        [slack] = destinations.of_team("slack", 1)
        assert (slack.id, slack.name, slack.settings, slack.disabled_ms) == (
            2,
            "#runs",
            {"shown": "hooks"},
            7,
        )
        [apprise] = destinations.of_team("apprise", 1)
        assert (apprise.id, apprise.name, apprise.settings) == (1, "phone", {"shown": "ntfy"})
        own = destinations.of_user(2)
        assert own is not None
        assert own.created_ms == 9
        assert len(own.sealed) == len(slack.sealed) > 0


def test_a_number_is_not_used_again(database: Database, address: str) -> None:
    migrate(database)
    with open_metadata_store(address) as store:
        url = {"sealed": b"x", "shown": ""}
        new = store.alerts.destinations.create("slack", 1, "#new", url, CLI, 1)
        assert new.id > 3  # of a channel that was deleted before
        store.alerts.destinations.delete("slack", 1, new.id, CLI, 1)
        assert store.alerts.destinations.create("slack", 1, "#new", url, CLI, 1).id > new.id


def test_back_to_a_table_for_each_kind(database: Database) -> None:
    before = rows(database)
    migrate(database)
    downgrade(database, "0041")
    assert rows(database) == before
    database.write(
        lambda connection: connection.execute(
            text(
                "INSERT INTO slack_destination (team_id, channel, sealed, shown, created_ms) "
                f"VALUES (1, '#new', {_SEALED}, '', 1)"
            )
        )
    )
    assert max(row["id"] for row in rows(database)["slack_destination"]) > 3
    migrate(database)


def test_a_store_without_destinations(empty: NewAddress) -> None:
    database = Database(empty())
    migrate(database)
    downgrade(database, "0041")
    migrate(database)
    downgrade(database, "0041")
    assert all(not table_rows for table_rows in rows(database).values())
    database.close()
