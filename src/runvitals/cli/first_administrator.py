"""Creates the first administrator of a server, for installations without a person at a browser."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.model.account_names import suggested_name

if TYPE_CHECKING:
    from runvitals.server.metadata_store import MetadataStore

EMAIL, NAME = "RUNVITALS_ADMIN_EMAIL", "RUNVITALS_ADMIN_NAME"
PASSWORD_FILE = "RUNVITALS_ADMIN_PASSWORD_FILE"
_MAX_PASSWORD_FILE = 4096


def tell_removed(removed: Mapping[str, Sequence[str]]) -> None:
    """Say on stderr what requests had made of accounts before there was an administrator."""
    for kind, names in removed.items():
        text = f"removed {kind} that requests made before there was an administrator"
        print(inert(f"runvitals: {text}: {', '.join(names)}"), file=sys.stderr, flush=True)


@dataclass(frozen=True, slots=True)
class FirstAdministrator:
    """Who is to administer the server. `password_file` None: a link is printed to set the password."""

    email: str
    name: str
    password_file: str | None = None

    def create(self, metadata_store: MetadataStore, now_ms: int) -> str | None:
        """Create the user unless there is an administrator; return the path to set a password, if needed.

        Servers that start together take turns.

        Raises:
            ValueError: an invalid name, address or password.
            OSError: the file of the password cannot be read.
        """
        from runvitals.server.audit.storage.audit import CLI

        hashed = None if self.password_file is None else self._hashed(self.password_file)
        accounts = metadata_store.accounts
        removed: dict[str, list[str]] = {}

        def work() -> str | None:
            metadata_store.issued_ids.take_turns()
            if accounts.users.any_administrator():
                return None
            removed.update(accounts.remove_planted(CLI, now_ms))
            user = accounts.users.create(
                self.name, CLI, now_ms, address=self.email, verified=True, org_role="admin", via="setup"
            )
            if hashed is not None:
                accounts.credentials.set_password(user.id, hashed, CLI, now_ms)
                return None
            return f"/-/reset#{accounts.one_time_tokens.create('reset_password', now_ms, user_id=user.id)}"

        link = metadata_store.in_one_transaction(work)
        tell_removed(removed)
        return link

    def _hashed(self, path: str) -> str:
        from runvitals.server.accounts.passwords import Passwords, password_problem

        try:
            with open(path, encoding="utf-8") as file:
                password = file.read(_MAX_PASSWORD_FILE).rstrip("\r\n")
        except UnicodeDecodeError:
            raise ValueError(f"{PASSWORD_FILE}: {path} is not UTF-8 text") from None
        problem = password_problem(password, name=self.name, addresses=(self.email,))
        if problem is not None:
            raise ValueError(f"{PASSWORD_FILE}: {problem}")
        return Passwords().hash(password)


def requested_administrator(
    email: str | None, environ: Mapping[str, str] = os.environ
) -> FirstAdministrator | None:
    """The administrator that `--admin-email` or the environment names; None if neither does.

    Example:
        >>> requested_administrator("ada@example.org", {}).name
        'ada'
    """
    address = email or environ.get(EMAIL)
    if not address:
        return None
    name = environ.get(NAME) or suggested_name(address)
    return FirstAdministrator(address, name, environ.get(PASSWORD_FILE) or None)
