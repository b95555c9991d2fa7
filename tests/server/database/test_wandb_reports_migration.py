"""From the first form of revision 0046, whose table of W&B's reports had one column more."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, migrate
from runvitals.server.metadata_store import open_metadata_store
from runvitals.server.reports.storage.rows import ReportAuthor
from tests.server.database.conftest import NewAddress
from tests.server.database.schemas import schema
from tests.server.database.test_migration import run

pytestmark = pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
DOCUMENT = {"title": "Rates", "description": "", "blocks": []}


def test_reports_of_clients_are_saved(kind: str, empty: NewAddress) -> None:
    address = empty()
    database = Database(address)
    migrate(database)
    current = schema(database)
    downgrade(database, "0046")
    run(database, "DROP TABLE wandb_report")
    run(
        database,
        f"""CREATE TABLE wandb_report (report_id INTEGER NOT NULL, revision INTEGER NOT NULL,
        spec {"BLOB" if kind == "sqlite" else "BYTEA"} NOT NULL,
        CONSTRAINT pk_wandb_report PRIMARY KEY (report_id),
        CONSTRAINT fk_wandb_report_report_id FOREIGN KEY(report_id) REFERENCES report (id)
        ON DELETE CASCADE)""",
    )
    migrate(database)
    assert schema(database) == current
    database.close()
    with open_metadata_store(address) as store:
        accounts = store.accounts
        user = accounts.users.create("ada", CLI, 1)
        project = accounts.owned_projects.create(user.entity_id, "digits", CLI, 1)
        report = accounts.reports.create(project.id, DOCUMENT, ReportAuthor(user.id), 1)
        store.wandb_report_specs.put(report.id, "{}")
        assert store.wandb_report_specs.get(report.id) == "{}"
