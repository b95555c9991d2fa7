"""An organisation on a real server: teams, users in each role, projects of each visibility, runs and keys."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.reports.storage.rows import ReportAuthor
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from tests.patience import PATIENCE_S
from tests.server.serving import Served, serving

NOW = int(time.time() * 1000)
TEAM, OTHER_TEAM = "vision", "speech"
VISIBILITIES = ("private", "restricted", "team", "organisation", "public", "open")


class ServedOrganisation:
    """A server with accounts, and its users.

    - `rita` administers the organisation and is in no team. `alice` administers the team `vision`, `bob` and
      `carol` are members, `vera` is a viewer. `otto` administers the team `speech`.
    - The team `vision` has a project of each visibility, named so and owned by bob; `speech` has `voice`.
    - Each project has the runs `PROJECT-bob` and `PROJECT-carol` (`voice`: `voice-otto`), `deleted-bob` is in
      the trash of `team`, and the service account `ci` of vision made `team-ci`.

    Attributes:
        keys: the secret of a key with all rights, by user or service account.
        reports: ids of published reports by project and author, such as `team-bob`.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.url = served.url
        self.metadata_store = served.metadata_store
        self.accounts: AccountStore = served.metadata_store.accounts
        self.users: dict[str, int] = {}
        self.keys: dict[str, str] = {}
        self.reports: dict[str, int] = {}
        self._create()

    def headers(self, who: str | None) -> dict[str, str]:
        """The headers of a request by a user or service account; of a visitor for None."""
        return {} if who is None else {"authorization": f"Bearer {self.keys[who]}"}

    def ask(self, who: str | None, method: str, path: str, **how: Any) -> httpx.Response:
        """Send a request with the key of a user; without one for None."""
        headers: Mapping[str, str] = {**self.headers(who), **how.pop("headers", {})}
        return httpx.request(method, f"{self.url}{path}", headers=headers, timeout=PATIENCE_S, **how)

    def sign_in(self, name: str) -> str:
        """The secret of a new session of a user."""
        life = self.served.app.services.access.directory.session_life()
        return self.accounts.sessions.create(self.users[name], NOW, life, method="password")

    def rights_changed(self) -> None:
        """Have the server notice a change that was made directly in its database."""
        self.served.app.services.access.rights_changed()

    def add_report(self, project: str, author: str) -> None:
        """Publish a report of a user in a project."""
        reports, project_id = self.accounts.reports, self.metadata_store.projects.id(project)
        document = {"title": f"Report of {author}", "description": "", "blocks": []}
        report = reports.create(project_id, document, ReportAuthor(self.users[author]), NOW)
        self.reports[f"{project}-{author}"] = reports.publish(report.id, 1, NOW).id

    def _create(self) -> None:
        for name in ("rita", "alice", "bob", "carol", "vera", "otto"):
            role = "admin" if name == "rita" else "member"
            self.users[name] = self.accounts.users.create(name, CLI, NOW, org_role=role).id
        for team, administrator in ((TEAM, "alice"), (OTHER_TEAM, "otto")):
            self.accounts.teams.create(team, CLI, NOW, administrator=self.users[administrator])
        for name, role in (("bob", "member"), ("carol", "member"), ("vera", "viewer")):
            self.accounts.members.add(TEAM, name, role, CLI, NOW)
        for name, user_id in self.users.items():
            self.keys[name] = self.accounts.keys.create(name, CLI, NOW, user_id=user_id, scope="full")[0]
        team_id = self.accounts.teams.by_name(TEAM).id
        service = self.accounts.service_accounts.create("ci", team_id, CLI, NOW)
        self.keys["ci"] = self.accounts.keys.create("ci", CLI, NOW, service_account_id=service.id)[0]
        self._create_runs(service.id)
        self.rights_changed()

    def _create_runs(self, service_account_id: int) -> None:
        own = [f"{level}-{name}" for level in VISIBILITIES for name in ("bob", "carol")]
        for uid in (*own, "deleted-bob", "team-ci"):
            project = "team" if uid in ("deleted-bob", "team-ci") else uid.partition("-")[0]
            self.add_run(uid, project, TEAM, uid.partition("-")[2], service_account_id)
        self.add_run("voice-otto", "voice", OTHER_TEAM, "otto", service_account_id)
        for level in VISIBILITIES:
            project_id = self.metadata_store.projects.id(level)
            self.accounts.owned_projects.update(project_id, CLI, NOW, owner_id=self.users["bob"])
            self.accounts.owned_projects.update(project_id, CLI, NOW, visibility=level)
        run = self.metadata_store.runs.find("deleted-bob", NOW)
        assert run is not None
        self.metadata_store.runs.delete([run.id], NOW)

    def add_run(
        self, uid: str, project: str, team: str, author: str, service_account_id: int | None = None
    ) -> None:
        """Store a run of a user, or of the service account for the author `ci`."""
        team_id = self.accounts.teams.by_name(team).id
        by_ci = author == "ci"
        sender = Sender(team_id, None if by_ci else self.users[author], service_account_id if by_ci else None)
        # An hour between two heartbeats, so that the runs are running however long the tests take.
        writer = WriterRegistration(uid, f"monitor.{uid}", project, interval_s=3600, sender=sender)
        self.metadata_store.writers.join([writer], NOW)


@contextmanager
def served_organisation(folder: Path) -> Iterator[ServedOrganisation]:
    """A server on loopback, with accounts. Its clock stands still, a second after everything was created:
    confirmations of passwords do not expire, however long the tests take."""
    with serving(folder, clock=lambda: NOW + 1000) as served:
        yield ServedOrganisation(served)
