"""From a store of before accounts, with runs and tokens in it."""

from __future__ import annotations

from sqlalchemy import text

from runvitals.model.filter import Filter
from runvitals.model.run_sort import RunSort
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.database import Database
from runvitals.server.database.migration import is_current, migrate
from runvitals.server.database.tables import metadata
from runvitals.server.metadata_store import open_metadata_store
from tests.server.database.conftest import NewAddress

T0 = 1_800_000_000_000
_ROWS = (
    "INSERT INTO project (id, name, created_ms) VALUES (3, 'digits', 1), (4, 'letters', 2)",
    """INSERT INTO run (id, uid, project_id, name, group_name, job_type, created_ms, started_ms, last_ms,
        settled_state) VALUES (5, 'otter-1', 3, 'otter', '', '', 1, 1, 2, 'finished')""",
    "INSERT INTO run_text (run_id, text) VALUES (5, 'otter')",
)


def test_a_store_of_before_accounts_is_adopted_by_a_team(empty: NewAddress) -> None:
    address = empty()
    database = Database(address)
    migrate(database, "0004")
    assert not is_current(database)
    for statement in _ROWS:
        database.write(lambda connection, s=statement: connection.execute(text(s)))
    database.close()

    with open_metadata_store(address) as metadata_store:
        secret, _ = metadata_store.tokens.create("cluster A", T0)
        assert metadata_store.accounts.users.page() == []
        assert metadata_store.accounts.service_accounts.legacy() is None
        newest = RunSort("started_ms")
        assert [run.uid for run in metadata_store.runs.page(Filter(), newest, T0).runs] == ["otter-1"]

        ada = metadata_store.accounts.users.create("ada", CLI, T0, org_role="admin")
        team = metadata_store.accounts.teams.create("vision", CLI, T0, administrator=ada.id)
        assert metadata_store.accounts.teams.adopt(team.id, CLI, T0) == 2
        assert metadata_store.accounts.teams.adopt(team.id, CLI, T0) == 0

        project = metadata_store.accounts.project_members.get(3)
        assert (project.entity_id, project.visibility, project.owner_id) == (team.id, "team", None)
        legacy = metadata_store.accounts.service_accounts.legacy()
        assert legacy is not None
        assert (legacy.team_id, legacy.kind) == (team.id, "legacy")
        assert metadata_store.tokens.check(secret, T0) is not None
        assert [run.uid for run in metadata_store.runs.page(Filter(), newest, T0).runs] == ["otter-1"]


def test_the_migration_makes_the_tables_of_the_code(address: str) -> None:
    database = Database(address)
    try:
        for table in metadata.sorted_tables:
            names = ", ".join(f'"{column.name}"' for column in table.c)
            database.write(lambda c, n=names, t=table.name: c.execute(text(f'SELECT {n} FROM "{t}"')).all())
    finally:
        database.close()
