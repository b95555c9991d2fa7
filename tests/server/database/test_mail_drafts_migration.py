"""From a table of users who were deleted to one of all mail that was drafted, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from runvitals.server.database.database import Database
from runvitals.server.database.migration import downgrade, migrate
from runvitals.server.mail import messages
from runvitals.server.mail.storage.drafts import MailDraft
from runvitals.server.metadata_store import open_metadata_store
from tests.server.database.conftest import NewAddress

_WAITING = "INSERT INTO deletion_notice (name, address, deleted_ms) VALUES ('bob', 'bob@example.org', 5)"


@pytest.fixture
def address(empty: NewAddress) -> str:
    return empty()


@pytest.fixture
def database(address: str) -> Iterator[Database]:
    database = Database(address)
    migrate(database)
    downgrade(database, "0042")
    yield database
    database.close()


def run(database: Database, statement: str) -> None:
    database.write(lambda connection: connection.execute(text(statement)))


def test_users_who_were_deleted_get_their_mail(database: Database, address: str) -> None:
    run(database, _WAITING)
    migrate(database)
    with open_metadata_store(address) as store:
        (draft,) = store.accounts.mail_drafts.all()
        assert draft == MailDraft(draft.id, "bob@example.org", messages.account_deleted("bob"), None, 5)
        assert store.accounts.mail_drafts.send(messages.account_deleted("eve"), "eve@example.org", 6)
        assert [row.created_ms for row in store.accounts.mail_drafts.all()] == [5, 6]


def test_no_mail_is_lost_on_the_way_back(database: Database, address: str) -> None:
    migrate(database)
    with open_metadata_store(address) as store:
        store.accounts.mail_drafts.send(messages.account_suspended("bob"), "bob@example.org", 1)
    with pytest.raises(RuntimeError, match="1 mails wait for a server to send them"):
        downgrade(database, "0042")
    run(database, "DELETE FROM mail_draft")
    downgrade(database, "0042")
    run(database, _WAITING)
    migrate(database)
