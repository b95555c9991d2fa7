"""What another process changes about rights is noticed within a second, on both databases."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.identification.identity import Credential
from runvitals.server.access.principals import Anonymous
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.patience import PATIENCE_S

T0: Final = 1_800_000_000_000


class Two:
    """The stores of two processes on one database; the second one's rights, and its clock.

    bob, of the team `vision`, has a key, a session and a run in the project `digits`.
    """

    def __init__(self, first: MetadataStore, second: MetadataStore) -> None:
        self.accounts, self.now_ms = first.accounts, T0
        self.rita = self.accounts.users.create("rita", CLI, T0, org_role="admin")
        self.bob = self.accounts.users.create("bob", CLI, T0)
        self.team = self.accounts.teams.create("vision", CLI, T0, administrator=self.rita.id)
        self.accounts.members.add("vision", "bob", "member", CLI, T0)
        self.secret, self.key = self.accounts.keys.create("laptop", CLI, T0, user_id=self.bob.id)
        sender = Sender(self.team.id, self.rita.id, None)
        first.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits", sender=sender)], T0)
        self.project_id = first.projects.id("digits")
        self.link, self.link_row = self.accounts.guest_links.create(CLI, T0, project_id=self.project_id)
        self.directory = Directory(second, lambda: self.now_ms, lambda: self.now_ms / 1000)
        self.session = self.accounts.sessions.create(
            self.bob.id, T0, self.directory.session_life(), method="password"
        )

    def may(self, action: Action, credential: Credential | None = None) -> bool:
        """Whether bob's key, or another credential, may do an action on the run, by the second process."""
        identity = self.directory.identify(credential or Credential("key", self.secret))
        principal = Anonymous() if identity is None else identity.principal
        project = self.directory.project(self.project_id)
        return self.directory.may(principal, action, project)


@pytest.fixture
def two(metadata_store: MetadataStore, address: str) -> Iterator[Two]:
    with open_metadata_store(address) as second:
        yield Two(metadata_store, second)


CHANGES: Final[dict[str, tuple[Action, str, Callable[[Two], object]]]] = {
    "removed": (
        Action.PROJECT_READ,
        "key",
        lambda two: two.accounts.members.remove("vision", "bob", CLI, T0),
    ),
    "demoted": (
        Action.RUN_CREATE,
        "key",
        lambda two: two.accounts.members.set_role("vision", "bob", "viewer", CLI, T0),
    ),
    "key revoked": (Action.PROJECT_READ, "key", lambda two: two.accounts.keys.revoke(two.key.id, CLI, T0)),
    "session ended": (
        Action.PROJECT_READ,
        "session",
        lambda two: two.accounts.sessions.end(two.bob.id, CLI, T0),
    ),
    "suspended": (
        Action.PROJECT_READ,
        "session",
        lambda two: two.accounts.users.update(two.bob.id, CLI, T0, state="suspended"),
    ),
    "access lowered": (
        Action.RUN_CREATE,
        "key",
        lambda two: two.accounts.users.update(two.bob.id, CLI, T0, access="viewer"),
    ),
    "account deleted": (
        Action.PROJECT_READ,
        "key",
        lambda two: two.accounts.users.delete(two.bob.id, CLI, T0, leave_teams=True),
    ),
    "project restricted": (
        Action.PROJECT_READ,
        "key",
        lambda two: two.accounts.owned_projects.update(two.project_id, CLI, T0, visibility="restricted"),
    ),
    "link revoked": (
        Action.PROJECT_READ,
        "link",
        lambda two: two.accounts.guest_links.revoke(two.link_row.id, CLI, T0),
    ),
    "links switched off": (
        Action.PROJECT_READ,
        "link",
        lambda two: two.accounts.settings.put({"allow_public_links": False}, CLI, T0),
    ),
    "team deleted": (
        Action.PROJECT_READ,
        "key",
        lambda two: two.accounts.teams.delete("vision", CLI, T0),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_right_that_is_taken_away_is_gone_within_a_second(two: Two, change: str) -> None:
    action, kind, take_away = CHANGES[change]
    secrets = {"key": two.secret, "session": two.session, "link": two.link}
    credential = Credential(kind, secrets[kind])  # type: ignore[arg-type]
    assert two.may(action, credential)
    take_away(two)
    two.now_ms += 1000
    assert not two.may(action, credential)


def test_what_a_custom_role_loses_is_gone_within_a_second(two: Two) -> None:
    two.accounts.roles.create("Cleaner", "viewer", ["run:create"], "", CLI, T0)
    two.accounts.members.set_role("vision", "bob", "Cleaner", CLI, T0)
    assert two.may(Action.RUN_CREATE)
    two.accounts.roles.update("Cleaner", CLI, T0, name="Cleaner", description="", actions=["run:update"])
    two.now_ms += 1000
    assert not two.may(Action.RUN_CREATE)


def test_a_program_takes_a_right_away(two: Two, address: str) -> None:
    """Another process indeed: what an administrator runs beside the server."""
    assert two.may(Action.PROJECT_READ)
    program = (
        "import sys; from runvitals.server.metadata_store import open_metadata_store;"
        "from runvitals.server.audit.storage.audit import CLI\n"
        "with open_metadata_store(sys.argv[1]) as store:\n"
        " store.accounts.members.remove('vision', 'bob', CLI, 1)"
    )
    subprocess.run([sys.executable, "-c", program, address], check=True, timeout=PATIENCE_S)
    two.now_ms += 1000
    assert not two.may(Action.PROJECT_READ)
