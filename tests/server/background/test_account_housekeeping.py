"""What expires of accounts is removed, and deletions that are due are carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.background.account_housekeeping import (
    ENDED_SESSION_MS,
    UNCONFIRMED_MS,
    AccountHousekeeping,
)
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from runvitals.store.errors import NotFound
from tests.empty_metadata import new_metadata_store

T0 = 1_800_000_000_000
DAY_MS = 86_400_000


def test_what_has_expired_goes_and_the_rest_stays(tmp_path: Path) -> None:
    with new_metadata_store(tmp_path / "catalogue.db") as metadata_store:
        accounts = metadata_store.accounts
        environment = {
            "RUNVITALS_SMTP_URL": "smtp://127.0.0.1:1?tls=none",
            "RUNVITALS_MAIL_FROM": "runs@lab.example",
            "RUNVITALS_URL": "https://runs.lab.example",
        }
        mailer = Mailer(metadata_store, SecretBox({"k": bytes(32)}), lambda: T0, environment)
        housekeeping = AccountHousekeeping(accounts, mailer)
        rita = accounts.users.create("rita", CLI, T0, org_role="admin")
        ada = accounts.users.create("ada", CLI, T0, address="ada@lab.example", verified=True)
        accounts.users.create("never", CLI, T0, address="never@lab.example")
        accounts.users.create("later", CLI, T0 + 2, address="later@lab.example")
        accounts.sessions.create(rita.id, T0, SessionLife(total_ms=1), method="password")
        accounts.users.request_deletion(ada.id, CLI, T0, after_ms=DAY_MS)
        accounts.idempotent_requests.begin(b"key", "user:1", b"request", T0)

        now_ms = T0 + UNCONFIRMED_MS + 1
        housekeeping.remove_expired(now_ms)
        (mail,) = accounts.outgoing_mail.due(now_ms)
        assert (mail.kind, mail.address) == ("account_deleted", "ada@lab.example")
        for name in ("ada", "never"):
            with pytest.raises(NotFound):
                accounts.users.by_name(name)
        assert accounts.users.by_name("later").state == "unverified"
        assert accounts.users.create("never", CLI, now_ms).state == "active"  # the name is free again
        assert accounts.sessions.purge(now_ms) == 1
        assert accounts.idempotent_requests.purge(now_ms) == 0  # housekeeping has removed it

        housekeeping.remove_expired(now_ms + 500 * DAY_MS)
        assert accounts.sessions.purge(now_ms + ENDED_SESSION_MS) == 0
        oldest_ms = min(event.time_ms for event in accounts.audit.page(AuditFilter()))
        assert oldest_ms > now_ms + 99 * DAY_MS
