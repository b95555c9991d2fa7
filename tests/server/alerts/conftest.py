"""A metadata store with a team and its runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runvitals.model.ending import Ending
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.alerts.run_alerts import LOST_MS, RunAlerts
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.events.outbox import StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.empty_metadata import new_metadata_store
from tests.server.mail.conftest import T0, SetClock


class Team:
    """The team vision with the administrator ada and the member bob, and what they are notified."""

    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self.clock = SetClock()
        self.monotonic_s = 0.0
        self.ada = self._user("ada")
        self.bob = self._user("bob")
        self.team = store.accounts.teams.create("vision", CLI, T0, administrator=self.ada.id)
        store.accounts.members.add("vision", "bob", "member", CLI, T0)
        self.directory = Directory(store, self.clock, lambda: self.monotonic_s)
        self.box = SecretBox({"k": bytes(32)})
        self.alerts = RunAlerts(store, self.directory, self.box, self.clock, lambda: self.monotonic_s)
        self._seq = 0

    def _user(self, name: str) -> UserRow:
        address = f"{name}@example.org"
        return self.store.accounts.users.create(name, CLI, T0, address=address, verified=True)

    def run(
        self, uid: str, author: UserRow | None = None, writer: str = "monitor.node1.a", **how: Any
    ) -> RegisteredWriter:
        """A run of bob, or of somebody else."""
        sender = Sender(self.team.id, author_id=(author or self.bob).id)
        registration = WriterRegistration(uid, writer, "digits", sender=sender, **how)
        return self.store.writers.join([registration], self.clock())[0]

    def end(self, writer: RegisteredWriter, state: str = "crashed", **ending: Any) -> None:
        self.store.writers.record_ends([WriterEnd(writer.writer_id, Ending(state, **ending), self.clock())])  # type: ignore[arg-type]

    def alert(self, writer: RegisteredWriter, title: str, level: str = "info", **data: Any) -> None:
        self._seq += 1
        event = StoredEvent(
            writer.run_id,
            self.clock(),
            "alert",
            level,
            f"about {title}",
            {"title": title, **data},
            writer.writer_id,
            self._seq,
        )
        self.store.events.add([event])

    def wait(self, ms: int) -> None:
        """Let time pass."""
        self.clock.now_ms += ms
        self.monotonic_s += ms / 1000

    def told(self) -> list[StoredNotification]:
        """Decide, and take what is new in the outbox."""
        while self.alerts.decide():
            pass
        outbox = self.store.alerts.outbox
        notifications = []
        while due := outbox.due(self.clock() + 1, 1000):
            for notification in due:
                outbox.end(notification, "sent", self.clock())
                notifications.append(notification)
        return sorted(notifications, key=lambda notification: notification.id)

    def titles(self) -> list[tuple[str, str]]:
        """Target and title of what is new."""
        return [(notification.target, notification.text.partition("\n")[0]) for notification in self.told()]

    def choose(self, user: UserRow, **data: Any) -> None:
        """Set what a user is notified of."""
        self.store.alerts.settings.put_user(user.id, data, self.clock())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MetadataStore]:
    with new_metadata_store(tmp_path / "catalogue.db") as opened:
        yield opened


@pytest.fixture
def team(store: MetadataStore) -> Team:
    return Team(store)


@pytest.fixture
def long_enough(team: Team) -> Team:
    """The server has been up for as long as a run may be silent."""
    team.wait(LOST_MS)
    return team
