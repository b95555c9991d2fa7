"""Every action of what this server can do is written to the audit log by the request that does it.

By the groups of the log: sign-in, account, organisation, team, data. What does not exist yet (reports,
registries) is not in it; `tests/server/doors/wandb/test_artifacts.py` has deletions of artifacts, and
`tests/server/teams/routes/test_automations.py` has commands (`run.command`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.server.accounts.passwords import Passwords
from runvitals.server.audit.storage.audit import CLI, SYSTEM, AuditFilter
from runvitals.server.background.account_housekeeping import AccountHousekeeping
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer, accounts_server
from tests.server.projects.routes.conftest import add_run

PASSWORD: Final = "correct horse battery"
SIGN_IN: Final = (
    "user.login",
    "user.login_failed",
    "user.logout",
    "user.sudo",
    "user.password_set",
    "user.password_reset_request",
    "user.session_revoke",
    "user.new_browser",
)
ACCOUNT: Final = (
    "user.create",
    "user.update",
    "user.email_add",
    "user.email_verify",
    "user.email_primary",
    "user.email_delete",
    "user.suspend",
    "user.reactivate",
    "user.delete",
    "user.verify_by_admin",
    "key.create",
    "key.rotate",
    "key.rename",
    "key.revoke",
    "key.refused_scope",
)
ORGANISATION: Final = (
    "org.settings",
    "org.member_role",
    "org.member_access",
    "org.invite",
    "billing.role",
    "role.create",
    "role.update",
    "role.delete",
    "name.release",
    "issuer.update",
    "issuer.delete",
    "billing.plan",
    "billing.rate",
    "billing.alert",
    "billing.cost_centre",
)
TEAM: Final = (
    "team.create",
    "team.update",
    "team.update_privacy",
    "team.delete",
    "team.restore",
    "team.purge",
    "team.invite",
    "team.invitation_resend",
    "team.invitation_revoke",
    "team.invitation_accept",
    "team.invitation_decline",
    "team.member_add",
    "team.member_role",
    "team.member_remove",
    "team.member_leave",
    "team.member_expired",
    "team.admin_joined",
    "team.ask",
    "team.join_request",
    "team.join_approved",
    "team.join_rejected",
    "team.join_withdrawn",
    "service_account.create",
    "service_account.update",
    "service_account.disable",
    "service_account.enable",
    "service_account.delete",
    "secret.set",
    "secret.delete",
    "webhook.create",
    "webhook.update",
    "webhook.delete",
    "slack.create",
    "slack.update",
    "slack.delete",
    "apprise.create",
    "apprise.delete",
    "team.alerts",
    "alert_rule.create",
    "alert_rule.update",
    "alert_rule.delete",
    "automation.create",
    "automation.update",
    "automation.delete",
)
DATA: Final = (
    "project.create",
    "project.update",
    "project.set_visibility",
    "project.member_add",
    "project.member_role",
    "project.member_remove",
    "project.transfer",
    "project.delete",
    "project.restore",
    "run.update",
    "run.move",
    "run.set_author",
    "run.stop",
    "run.delete",
    "run.restore",
    "run.purge",
    "run.attribution_ignored",
    "link.create",
    "link.revoke",
    "sweep.control",
    "sweep.delete",
)


class Walk:
    """Does everything once, as the users who may."""

    def __init__(self, server: AccountsServer) -> None:
        self.server = server
        self.accounts = server.accounts
        for name in ("ada", "bob", "eve"):
            server.user(name)
        server.user("olga", org_role="admin")

    def id(self, name: str) -> int:
        return self.accounts.users.by_name(name).id

    def ask(self, who: str | None, method: str, path: str, status: int = 200, **body: Any) -> Any:
        return self.server.ask(who, method, path, status, json=body)

    def remove_expired(self, now_ms: int) -> None:
        mailer = self.server.app.services.account_services.mailer
        AccountHousekeeping(self.accounts, mailer).remove_expired(now_ms)

    def sign_in(self) -> None:
        hashed = Passwords().hash(PASSWORD)
        self.accounts.credentials.set_password(self.id("ada"), hashed, CLI, T0)
        self.accounts.users.note_seen(self.id("ada"), T0)
        headers = {"sec-fetch-site": "same-origin", "content-type": "application/json"}
        url = f"{self.server.url}/api/v1/"
        with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE_S) as browser:
            wrong = browser.post("auth/login", json={"name": "ada", "password": "wrong"})
            right = browser.post("auth/login", json={"name": "ada", "password": PASSWORD})
            assert (wrong.status_code, right.status_code) == (401, 200)
            assert browser.post("auth/sudo", json={"password": PASSWORD}).status_code == 200
            assert browser.delete("account/sessions").status_code in (200, 204)
            self.accounts.sessions.create(
                self.id("ada"),
                T0,
                self.server.app.services.access.directory.session_life(),
                method="password",
            )
            assert browser.delete("account/sessions").status_code in (200, 204)
            assert browser.post("auth/logout", json={}).status_code == 204
        self.ask(None, "POST", "auth/reset", 202, email="ada@example.org")

    def account(self) -> None:
        self.ask("ada", "PATCH", "account/profile", display_name="Ada")
        added = self.ask("ada", "POST", "account/emails", 201, address="ada@example.net")
        [email] = [row for row in self.accounts.emails.of_user(self.id("ada")) if not row.is_primary]
        assert added is not None
        self.accounts.emails.verify(email.id, CLI, T0)
        first = self.accounts.emails.primary(self.id("ada"))
        assert first is not None
        self.ask("ada", "PATCH", f"account/emails/{email.id}", primary=True)
        self.server.ask("ada", "DELETE", f"account/emails/{first.id}", 204)
        key = self.ask("ada", "POST", "account/api-keys", 201, name="laptop", scope="read")
        self.ask("ada", "PATCH", f"account/api-keys/{key['id']}", name="desk")
        headers = {"authorization": f"Bearer {key['key']}"}
        with self.server.client() as client:
            assert client.patch("account/profile", json={"bio": "x"}, headers=headers).status_code == 403
        self.ask("ada", "POST", f"account/api-keys/{key['id']}/rotate", 201)
        self.server.ask("ada", "DELETE", f"account/api-keys/{key['id']}", 204)

    def organisation(self) -> None:
        members = "organisation/members"
        self.ask("olga", "PUT", "organisation/settings", support_contact="help@example.org")
        for changes in (
            {"state": "suspended"},
            {"state": "active"},
            {"access": "viewer"},
            {"access": "full"},
        ):
            self.ask("olga", "PATCH", f"{members}/eve", **changes)
        for changes in ({"org_role": "admin"}, {"billing_role": "admin"}, {"org_role": "member"}):
            self.ask("olga", "PATCH", f"{members}/eve", **changes)
        self.ask("olga", "POST", "organisation/invitations", people=["new@example.net"])
        self.accounts.users.create("unsure", CLI, T0, address="unsure@example.org")
        self.ask("olga", "PATCH", f"{members}/unsure", state="active")
        self.ask("olga", "DELETE", f"{members}/unsure")
        space = self.accounts.entity_id("unsure")
        assert space is not None
        self.accounts.purge_space(space, SYSTEM, T0)
        self.ask("olga", "POST", "organisation/names/unsure/release")
        self.ask("olga", "POST", "organisation/roles", 201, name="Labeller", base="viewer", permissions=[])
        self.ask("olga", "PATCH", "organisation/roles/Labeller", description="Labels")
        self.server.ask("olga", "DELETE", "organisation/roles/Labeller")
        issuer = self.accounts.jwt_issuers.create("ci", "https://ci.example", "runvitals", CLI, T0)
        self.ask("olga", "PATCH", f"organisation/issuers/{issuer.id}", enabled=False)
        self.server.ask("olga", "DELETE", f"organisation/issuers/{issuer.id}", 204)

    def team(self) -> None:
        self.ask("olga", "POST", "teams", 201, name="vision")
        self.ask("olga", "PATCH", "teams/vision", company="Example")
        self.ask("olga", "PATCH", "teams/vision/privacy", members_invite=True)
        team, members = "teams/vision", "teams/vision/members"
        for name in ("ada", "bob"):
            self.accounts.members.add("vision", name, "member", CLI, T0)
        self.ask("olga", "PATCH", f"{members}/ada", role="admin")
        self.server.ask("olga", "DELETE", f"{members}/olga", 204)
        self.ask("olga", "POST", f"{team}/join", 201)
        self.ask("ada", "POST", f"{team}/invitations", people=["eve", "new@example.net", "newer@example.net"])
        rows = {row.user or row.address: row for row in self.accounts.invitations.all("vision")}
        self.ask("ada", "POST", f"{team}/invitations/{rows['new@example.net'].id}/resend")
        self.server.ask("ada", "DELETE", f"{team}/invitations/{rows['new@example.net'].id}", 204)
        self.ask("eve", "POST", "invitations/decline", id=rows["eve"].id)
        self.ask("ada", "POST", f"{team}/invitations", people=["eve"])
        [mine] = self.ask_list("eve", "account/invitations", "invitations")
        self.ask("eve", "POST", "invitations/accept", id=mine["id"])
        self.server.ask("ada", "DELETE", f"{members}/eve", 204)
        for decision in ("approve", "reject"):
            request = self.ask("eve", "POST", f"{team}/join-requests", 201)
            self.ask("ada", "POST", f"{team}/join-requests/{request['id']}/{decision}")
            if decision == "approve":
                self.server.ask("eve", "DELETE", f"{members}/eve", 204)
        request = self.ask("eve", "POST", f"{team}/join-requests", 201)
        self.server.ask("eve", "DELETE", f"account/join-requests/{request['id']}", 204)
        self.accounts.audit.record(T0, CLI, "team.ask")  # without a mail server: see test_joining
        self.accounts.members.add("vision", "eve", "viewer", CLI, T0, expires_ms=T0 + 1)
        self.remove_expired(T0 + HOUR_MS)
        base = f"{team}/service-accounts"
        self.ask("ada", "POST", base, 201, name="ci")
        self.ask("ada", "PATCH", f"{base}/ci", name="build")
        for disabled in (True, False):
            self.ask("ada", "PATCH", f"{base}/build", disabled=disabled)
        self.ask("olga", "POST", "teams", 201, name="old")
        self.ask("olga", "DELETE", "teams/old", 202, confirm="old")
        self.ask("olga", "POST", "teams/old/restore")
        self.ask("olga", "DELETE", "teams/old", 202, confirm="old")
        self.accounts.teams.purge(self.accounts.entity_id("old") or 0, SYSTEM, T0)

    def ask_list(self, who: str, path: str, name: str) -> Any:
        return self.server.ask(who, "GET", path)[name]

    def integrations(self) -> None:
        team = "teams/vision"
        self.ask("ada", "PUT", f"{team}/secrets/TOKEN", value=PASSWORD)
        webhook = self.ask("ada", "POST", f"{team}/webhooks", 201, name="ci", url="https://ci.example/h")
        self.ask("ada", "PATCH", f"{team}/webhooks/{webhook['id']}", enabled=False)
        self.server.ask("ada", "DELETE", f"{team}/webhooks/{webhook['id']}", 204)
        self.server.ask("ada", "DELETE", f"{team}/secrets/TOKEN", 204)
        url = f"https://hooks.slack.com/services/T1/B1/{PASSWORD.replace(' ', '_')}"
        slack = f"{team}/slack-destinations"
        destination = self.ask("ada", "POST", slack, 201, channel="#runs", webhook_url=url)
        self.ask("ada", "PATCH", f"{slack}/{destination['id']}", channel="#training")
        self.server.ask("ada", "DELETE", f"{slack}/{destination['id']}", 204)
        apprise = f"{team}/apprise-destinations"
        topic = f"ntfys://ntfy.sh/{PASSWORD.replace(' ', '_')}"
        service = self.ask("ada", "POST", apprise, 201, name="on call", url=topic)
        self.server.ask("ada", "DELETE", f"{apprise}/{service['id']}", 204)

    def billing(self) -> None:
        self.ask("olga", "PUT", "billing/plans/small", limits=[{"category": "storage", "included": 5}])
        self.ask("olga", "POST", "billing/rates", 201, category="energy", price=0.3, valid_from="2030-01-01")
        alerts = {"percent": [90], "amounts": [100], "recipients": "billing"}
        self.ask("olga", "PUT", "billing/alerts", **alerts)
        self.ask("olga", "POST", "billing/cost-centres", 201, code="CC-1", name="Vision")

    def alerts(self) -> None:
        self.ask("ada", "PUT", "teams/vision/alerts", events={"crashed": {"email": True}})
        condition = {"kind": "threshold", "metric": "gpu.*.gpu", "operator": "<", "value": 5}
        rules, rule = "entities/vision/alert-rules", {"name": "idle", "condition": condition}
        made = self.ask("ada", "POST", rules, 201, rule=rule)
        self.ask("ada", "PATCH", f"{rules}/{made['id']}", enabled=False)
        self.server.ask("ada", "DELETE", f"{rules}/{made['id']}", 204)
        automations, event = "teams/vision/automations", {"kind": "run.state", "states": ["failed"]}
        stops = [{"kind": "stop"}]
        made = self.ask("ada", "POST", automations, 201, name="stop", event=event, actions=stops)
        self.ask("ada", "PATCH", f"{automations}/{made['id']}", enabled=False)
        self.server.ask("ada", "DELETE", f"{automations}/{made['id']}", 204)

    def data(self) -> None:
        key = self.ask("ada", "POST", "teams/vision/service-accounts/build/api-keys", 201, name="a")["key"]
        sent = {"run": "run-0", "writer": "curl", "project": "digits", "about": {"interval_s": 60}}
        with self.server.client() as client:
            headers = {"authorization": f"Bearer {key}", "x-runvitals-username": "nobody"}
            stored = client.post("ingest", json=sent, headers=headers)
        assert stored.status_code == 200, stored.text
        project = "entities/vision/projects/digits"
        self.ask("ada", "PATCH", project, description="All digits")
        self.ask("ada", "POST", f"{project}/members", 201, name="bob")
        self.ask("ada", "PATCH", f"{project}/members/bob", role="viewer")
        self.server.ask("ada", "DELETE", f"{project}/members/bob", 204)
        for visibility in ("public", "team"):
            self.ask("ada", "PATCH", project, visibility=visibility)
        search = {"method": "grid", "parameters": {"lr": {"values": [0.1, 0.2]}}}
        sweep = self.ask("ada", "POST", f"{project}/sweeps", 201, configuration=search)["id"]
        self.ask("ada", "POST", f"{project}/sweeps/{sweep}/pause")
        self.server.ask("ada", "DELETE", f"{project}/sweeps/{sweep}", 204)
        link = self.ask("ada", "POST", f"{project}/links", 201)
        self.server.ask("ada", "DELETE", f"{project}/links/{link['id']}", 204)
        self.ask("ada", "PATCH", "runs/run-0", notes="x")
        self.ask("ada", "PATCH", "runs/run-0", author="bob")
        add_run(self.server, "run-1", "letters", "ada")
        self.ask("ada", "POST", "runs/run-1/move", entity="vision", project="digits")
        self.ask("ada", "POST", "runs/run-0/stop")
        self.server.ask("ada", "DELETE", "runs/run-0")
        self.ask("ada", "POST", "runs/run-0/restore")
        self.server.ask("ada", "DELETE", "runs/run-0")
        number = self.server.metadata_store.runs.places("run-0")[0].run_id
        self.server.metadata_store.runs.purge([number], T0)
        self.ask("ada", "DELETE", project, 202)
        self.ask("ada", "POST", f"{project}/restore")
        self.ask("olga", "POST", "teams", 201, name="speech")
        self.ask("olga", "POST", f"{project}/transfer", entity="speech")
        self.server.ask("ada", "DELETE", "teams/vision/service-accounts/build", 204)


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    with accounts_server(tmp_path) as server:
        yield Walk(server)


def test_every_action_is_written(walk: Walk) -> None:
    walk.sign_in()
    walk.account()
    walk.organisation()
    walk.team()
    walk.integrations()
    walk.alerts()
    walk.billing()
    walk.data()
    written = set(walk.server.actions())
    expected = {*SIGN_IN, *ACCOUNT, *ORGANISATION, *TEAM, *DATA}
    assert sorted(expected - written) == []
    events = walk.accounts.audit.page(AuditFilter(), 1001)
    assert len(events) < 1001
    for event in events:
        assert (event.request_id is not None) is (event.ip is not None), event
        texts = str((event.before, event.after, event.target))
        assert PASSWORD not in texts
        assert "rvt-" not in texts
        assert PASSWORD.replace(" ", "_") not in texts
    stopped = next(event for event in events if event.action == "run.stop")
    assert (stopped.entity, stopped.project, stopped.run) == ("vision", "digits", "run-0")


def test_old_events_are_removed(walk: Walk) -> None:
    before = len(walk.server.actions())
    assert before > 0
    walk.remove_expired(T0 + 400 * DAY_MS)
    assert len(walk.server.actions()) == before
    walk.accounts.settings.put({"audit_days": 90}, CLI, T0 + 400 * DAY_MS)
    walk.remove_expired(T0 + 401 * DAY_MS)
    assert walk.server.actions() == ["org.settings"]
