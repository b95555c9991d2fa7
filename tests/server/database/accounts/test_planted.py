"""What requests made of accounts before there was an administrator, on both databases."""

from __future__ import annotations

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI, Actor, AuditFilter
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration

T0 = 1_800_000_000_000
REQUEST = Actor("system", "system", ip="127.0.0.1", agent="curl")
PROVIDER = Actor("system", "scim", via="provider", ip="10.0.0.7")


def plant(accounts: AccountStore) -> None:
    """All that an earlier version let anyone make who reached the server first."""
    accounts.settings.put({"signup": "open", "anonymous_access": "read"}, REQUEST, T0)
    accounts.scim.new_secret(REQUEST, T0)
    accounts.audit_webhook.put("https://evil.example/log", b"", REQUEST, T0)
    accounts.roles.create("spy", "viewer", {"run:create"}, "", REQUEST, T0)
    accounts.users.create("eve", PROVIDER, T0, via="scim")
    team = accounts.teams.create("main", REQUEST, T0)
    accounts.members.add("main", "eve", "admin", REQUEST, T0)
    spy = accounts.service_accounts.create("spy", team.id, REQUEST, T0)
    accounts.keys.create("spy", REQUEST, T0, service_account_id=spy.id, scope="full")


def test_nothing_of_it_is_left(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    plant(accounts)
    removed = accounts.remove_planted(CLI, T0 + 1)
    assert removed == {
        "settings": ["anonymous_access", "scim_secret_digest", "signup"],
        "audit webhook": ["https://evil.example/log"],
        "users": ["eve"],
        "teams": ["main"],
        "roles": ["spy"],
    }
    assert accounts.settings.all() == {}
    assert accounts.scim.secret() is None
    assert accounts.audit_webhook.get() is None
    assert accounts.roles.all() == []
    assert [row.user.name for row in accounts.users.listed()] == []
    accounts.users.create("eve", CLI, T0, org_role="admin")  # the names are free again
    accounts.teams.create("main", CLI, T0)
    (event,) = accounts.audit.page(AuditFilter(action="setup.remove"))
    assert event.before == removed


def test_what_the_command_line_made_stays(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    accounts.settings.put({"signup": "open", "name": "Mine"}, REQUEST, T0)
    accounts.settings.put({"signup": "closed"}, CLI, T0)
    accounts.scim.new_secret(CLI, T0)
    accounts.roles.create("reviewer", "viewer", {"run:create"}, "", CLI, T0)
    accounts.users.create("bob", CLI, T0)
    accounts.teams.create("vision", CLI, T0)
    accounts.members.add("vision", "bob", "admin", CLI, T0)
    assert accounts.remove_planted(CLI, T0 + 1) == {"settings": ["name"]}
    assert accounts.settings.all()["signup"] == "closed"
    assert accounts.scim.secret() is not None
    assert [member.name for member in accounts.members.of_team("vision")] == ["bob"]


def test_a_team_of_the_command_line_goes_if_requests_changed_it(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    accounts.users.create("bob", CLI, T0)
    accounts.users.create("eve", PROVIDER, T0, via="scim")
    accounts.teams.create("vision", CLI, T0)
    accounts.members.add("vision", "eve", "admin", PROVIDER, T0)
    assert accounts.remove_planted(CLI, T0 + 1) == {"users": ["eve"], "teams": ["vision"]}


def test_the_runs_stay(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "digits")], T0)
    plant(accounts)
    accounts.remove_planted(CLI, T0 + 1)
    accounts.users.create("ada", CLI, T0 + 1, org_role="admin")
    assert accounts.adopt_earlier_projects("main", T0 + 1)
    assert [run.entity for run in metadata_store.runs.places("otter-1")] == ["main"]


def test_it_happens_once(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    ada = accounts.users.create("ada", CLI, T0, org_role="admin", via="setup")
    plant(accounts)
    assert accounts.remove_planted(CLI, T0 + 1) == {}
    assert accounts.users.get(ada.id).state == "active"
    assert accounts.scim.secret() is not None


def test_guest_links_of_the_command_line_stay(metadata_store: MetadataStore) -> None:
    accounts = metadata_store.accounts
    team = accounts.teams.create("vision", CLI, T0)
    project = accounts.owned_projects.create(team.id, "digits", CLI, T0)
    kept, _ = accounts.guest_links.create(CLI, T0, project_id=project.id)
    metadata_store.writers.join([WriterRegistration("otter-1", "monitor.a.1", "letters")], T0)
    letters = metadata_store.projects.id("letters")
    planted, link = accounts.guest_links.create(REQUEST, T0, project_id=letters)
    assert accounts.remove_planted(CLI, T0 + 1) == {"guest links": [str(link.id)]}
    assert accounts.guest_links.check(planted, T0 + 1) is None
    assert accounts.guest_links.check(kept, T0 + 1) is not None


def test_what_the_server_counts_itself_is_not_listed(metadata_store: MetadataStore) -> None:
    metadata_store.usage.statements.put_drafts("2027-01", [], 2027, T0)  # as it does each day
    assert metadata_store.accounts.remove_planted(CLI, T0) == {}
