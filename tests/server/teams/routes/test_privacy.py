"""The privacy settings of a team, one by one: stored, shown and followed; those of the organisation too."""

from __future__ import annotations

import pytest

from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.mail.mailer import Mailer
from tests.server.accounts_server import AccountsServer
from tests.server.projects.routes.conftest import add_run
from tests.server.teams.routes.test_notices import ENVIRONMENT, waiting

PRIVACY = "teams/vision/privacy"
DIGITS = "entities/vision/projects/digits"


@pytest.fixture
def digits(vision: AccountsServer) -> AccountsServer:
    """The team with the project digits."""
    add_run(vision, "run-ada", "digits", "ada")
    return vision


def enforce(server: AccountsServer, **settings: object) -> None:
    server.ask("olga", "PUT", "organisation/settings", json=settings)


def setting(server: AccountsServer, name: str) -> tuple[object, bool, object]:
    setting = server.ask("olga", "GET", "teams/vision/settings")["settings"][name]
    return setting["value"], setting["editable"], setting["enforced_by"]


def test_public_projects(digits: AccountsServer) -> None:
    digits.ask("ada", "PATCH", DIGITS, json={"visibility": "public"})
    digits.ask("olga", "PATCH", PRIVACY, json={"public_projects": False})
    assert digits.ask("mallory", "GET", DIGITS)["visibility"] == "public"  # it stays so
    add_run(digits, "other", "letters", "ada")
    letters = DIGITS.replace("digits", "letters")
    for visibility in ("public", "open"):
        digits.ask("ada", "PATCH", letters, 403, json={"visibility": visibility})
    digits.ask("ada", "PATCH", DIGITS, json={"visibility": "team"})
    digits.ask("ada", "PATCH", DIGITS, 403, json={"visibility": "public"})
    enforce(digits, enforce_private="off")
    assert setting(digits, "public_projects") == (True, False, "organisation")
    digits.ask("ada", "PATCH", letters, json={"visibility": "public"})
    digits.ask("olga", "PATCH", PRIVACY, 409, json={"public_projects": False})


def test_public_links(digits: AccountsServer) -> None:
    def make(status: int = 201) -> None:
        digits.ask("ada", "POST", f"{DIGITS}/links", status, json={})

    def links() -> int:
        number = digits.metadata_store.projects.id("digits")
        return len(digits.accounts.guest_links.all(digits.clock(), project_id=number))

    make()
    digits.ask("olga", "PATCH", PRIVACY, json={"public_links": False})
    assert links() == 0
    make(403)
    digits.ask("olga", "PATCH", PRIVACY, json={"public_links": True})
    assert links() == 0  # revoked for good
    for off, on in (
        ({"enforce_public_sharing": "off"}, {"enforce_public_sharing": "none"}),
        ({"allow_public_links": False}, {"allow_public_links": True}),
    ):
        make()
        enforce(digits, **off)
        make(403)
        enforce(digits, **on)
        assert links() == 0


def test_members_invite(vision: AccountsServer) -> None:
    def invite(who: str, status: int, role: str = "member") -> None:
        body = {"people": [f"{who}-{role}@example.net"], "role": role}
        vision.ask(who, "POST", "teams/vision/invitations", status, json=body)

    invite("bob", 403)
    vision.ask("olga", "PATCH", PRIVACY, json={"members_invite": True})
    invite("bob", 200)
    invite("bob", 200, "viewer")
    invite("bob", 403, "admin")
    invite("eve", 403, "viewer")
    enforce(vision, enforce_members_invite="off")
    assert setting(vision, "members_invite") == (False, False, "organisation")
    invite("bob", 403)


def test_hidden(digits: AccountsServer) -> None:
    digits.ask("ada", "PATCH", DIGITS, json={"visibility": "public"})
    digits.ask("mallory", "GET", "teams/vision/profile")
    digits.ask("olga", "PATCH", PRIVACY, json={"hidden": True})
    for path in ("teams/vision", "teams/vision/profile", "teams/vision/projects"):
        digits.ask("mallory", "GET", path, 404)
        digits.ask("eve", "GET", path)
    digits.ask("mallory", "GET", DIGITS)
    digits.ask("olga", "PATCH", PRIVACY, json={"hidden": False})
    enforce(digits, enforce_hidden="on")
    digits.ask("mallory", "GET", "teams/vision/profile", 404)


def test_code_saving(vision: AccountsServer) -> None:
    def told() -> bool:
        saved: bool = vision.ask("bob", "GET", "entities/vision/defaults")["code_saving"]
        return saved

    assert not told()
    vision.ask("olga", "PATCH", PRIVACY, json={"code_saving": True})
    assert told()
    enforce(vision, enforce_code_saving="off")
    assert not told()
    assert setting(vision, "code_saving") == (False, False, "organisation")


def test_who_changes_them_and_who_is_told(vision: AccountsServer) -> None:
    box = SecretBox({"k": bytes(32)})
    vision.start_mail(Mailer(vision.metadata_store, box, vision.clock, ENVIRONMENT), box)
    vision.ask("ada", "PATCH", PRIVACY, 403, json={"hidden": True})
    vision.ask("mallory", "PATCH", PRIVACY, 404, json={"hidden": True})
    vision.ask("olga", "PATCH", PRIVACY, json={"hidden": True, "public_links": True})
    assert waiting(vision) == [("privacy_changed", "ada@example.org")]
    vision.ask("olga", "PATCH", PRIVACY, json={"hidden": True})
    assert len(waiting(vision)) == 1  # nothing changed
    events = vision.accounts.audit.page(AuditFilter(action="team.update_privacy", outcome="ok"))
    assert [(event.before, event.after) for event in events] == [({"hidden": False}, {"hidden": True})]
    vision.accounts.settings.put({"team_admins_edit_privacy": True}, CLI, vision.clock())
    vision.ask("ada", "PATCH", PRIVACY, json={"hidden": False})
