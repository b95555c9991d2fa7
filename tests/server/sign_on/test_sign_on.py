"""Signing in by a provider, against a provider that the test runs."""

from __future__ import annotations

import threading
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from runvitals.model.local_path import local_path
from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.sign_on.discovery import ProviderFailed
from runvitals.server.sign_on.outcomes import Linked, LinkNeeded, Outcome, Refused, SignedIn
from runvitals.server.sign_on.providers import stored_providers
from runvitals.server.sign_on.sign_on import SingleSignOn, UnknownProvider
from runvitals.store.errors import NoLongerValid
from tests.patience import PATIENCE_S
from tests.server.outbound.site import Answer, Site
from tests.server.sign_on.conftest import T0, Clocks, Configure
from tests.server.sign_on.provider import RSA, Idp, answer

MINUTE = 60_000
DISCOVERY = "/.well-known/openid-configuration"


def _sign_in(sso: SingleSignOn, idp: Idp, **start: Any) -> Outcome:
    begun = sso.start("lab", **start)
    return sso.finish("lab", idp.authorize(begun.url), begun.cookie, signed_in=start.get("link_user_id"))


def test_an_unknown_person_gets_an_account(configure: Configure, idp: Idp, accounts: AccountStore) -> None:
    sso = configure(auto_create=True)
    outcome = _sign_in(sso, idp, next_path="/ada/digits")
    assert isinstance(outcome, SignedIn)
    assert (outcome.created, outcome.provider, outcome.next_path) == (True, "lab", "/ada/digits")
    user = accounts.users.get(outcome.user_id)
    assert (user.name, user.display_name, user.state, user.created_via) == ("ada", "Ada L.", "active", "oidc")
    (email,) = accounts.emails.of_user(user.id)
    assert (email.address, email.verified_ms) == ("ada@lab.example", T0)
    (login,) = accounts.logins.of_user(user.id)
    assert (login.issuer, login.subject, login.label) == ("https://idp.example", "42", "ada@lab.example")
    again = _sign_in(sso, idp)
    assert again == SignedIn(user.id, "lab", False, "/")


def test_the_request_to_the_provider(configure: Configure, idp: Idp) -> None:
    begun = configure(auto_create=True).start("lab")
    parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun.url).query))
    assert parameters["redirect_uri"] == "https://runs.lab.example/api/v1/auth/lab/callback"
    assert parameters["scope"] == "openid email profile"
    assert len({parameters["state"], parameters["nonce"], parameters["code_challenge"], begun.cookie}) == 4
    assert min(len(parameters["state"]), len(parameters["nonce"]), len(begun.cookie)) >= 43


def test_without_auto_create_unknown_people_are_refused(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    assert _sign_in(configure(), idp) == Refused("no_account", "/")
    assert _sign_in(configure(auto_create=["other.example"]), idp) == Refused("no_account", "/")
    assert accounts.users.page() == []
    assert isinstance(_sign_in(configure(auto_create=["LAB.example"]), idp), SignedIn)


def test_a_domain_does_not_count_for_an_address_that_is_not_verified(configure: Configure, idp: Idp) -> None:
    for verified in (False, None, "yes", 1):
        idp.changes = {"email_verified": verified}
        assert _sign_in(configure(auto_create=["lab.example"]), idp) == Refused("no_account", "/")


def test_an_address_that_is_not_verified_is_not_taken_over(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    idp.changes = {"email_verified": False}
    outcome = _sign_in(configure(auto_create=True, trust_email=True), idp)
    assert isinstance(outcome, SignedIn)
    assert accounts.emails.of_user(outcome.user_id) == []


def test_names_are_made_from_what_the_provider_says(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    sso = configure(auto_create=True)
    names = []
    for subject, expected in enumerate(("Ada", "ada", "admin", "Çelik Öz@x", "../..", "", None)):
        idp.changes = {
            "sub": f"s{subject}",
            "preferred_username": expected,
            "email": f"u{subject}@lab.example",
        }
        outcome = _sign_in(sso, idp)
        assert isinstance(outcome, SignedIn)
        names.append(accounts.users.get(outcome.user_id).name)
    assert names == ["ada", "ada-2", "admin-2", "celik-oz", "user-2", "u5", "u6"]


def test_an_account_with_the_same_address_must_confirm_it(
    configure: Configure, idp: Idp, accounts: AccountStore, clocks: Clocks
) -> None:
    sso = configure(auto_create=True)
    ada = accounts.users.create("ada", CLI, T0, address="ADA@lab.example", verified=True)
    outcome = _sign_in(sso, idp, next_path="/ada")
    assert isinstance(outcome, LinkNeeded)
    assert outcome.next_path == "/ada"
    assert accounts.logins.of_user(ada.id) == []
    assert sso.confirming_user(outcome.secret) == ada.id
    linked = sso.confirm(outcome.secret)
    assert linked.login.user_id == ada.id
    with pytest.raises(NoLongerValid):
        sso.confirm(outcome.secret)
    assert _sign_in(sso, idp) == SignedIn(ada.id, "lab", False, "/")

    accounts.credentials.set_password(ada.id, "hash", CLI, T0)
    accounts.logins.unlink(ada.id, linked.login.id, CLI, T0)
    late = _sign_in(sso, idp)
    assert isinstance(late, LinkNeeded)
    clocks.now_ms += 15 * MINUTE
    with pytest.raises(NoLongerValid):
        sso.confirm(late.secret)


def test_a_trusted_provider_needs_no_confirmation(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    ada = accounts.users.create("ada", CLI, T0, address="ada@lab.example", verified=True)
    assert _sign_in(configure(trust_email=True), idp) == SignedIn(ada.id, "lab", False, "/")


def test_an_unverified_address_here_is_nobodys(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    stranger = accounts.users.create("stranger", CLI, T0, address="ada@lab.example")
    outcome = _sign_in(configure(auto_create=True, trust_email=True), idp)
    assert isinstance(outcome, SignedIn)
    assert outcome.user_id != stranger.id


def test_linking_adds_the_login_and_its_address(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    sso = configure()
    grace = accounts.users.create("grace", CLI, T0, address="grace@lab.example", verified=True)
    outcome = _sign_in(sso, idp, link_user_id=grace.id, next_path="/-/settings/emails")
    assert isinstance(outcome, Linked)
    assert outcome.next_path == "/-/settings/emails"
    assert {row.address for row in accounts.emails.of_user(grace.id)} == {
        "grace@lab.example",
        "ada@lab.example",
    }
    assert _sign_in(sso, idp) == SignedIn(grace.id, "lab", False, "/")

    bob = accounts.users.create("bob", CLI, T0)
    assert _sign_in(sso, idp, link_user_id=bob.id) == Refused("taken", "/")
    (login,) = accounts.logins.of_user(grace.id)
    with pytest.raises(ValueError, match="last way to sign in"):
        accounts.logins.unlink(grace.id, login.id, CLI, T0)
    actions = {event.action for event in accounts.audit.page(AuditFilter(action="user.*"))}
    assert {"user.login_link", "user.email_verify"} <= actions


def test_linking_needs_the_session_that_began_it(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    sso = configure()
    grace = accounts.users.create("grace", CLI, T0)
    for signed_in in (None, grace.id + 1):
        begun = sso.start("lab", link_user_id=grace.id)
        outcome = sso.finish("lab", idp.authorize(begun.url), begun.cookie, signed_in=signed_in)
        assert outcome == Refused("state", "/")
    assert accounts.logins.of_user(grace.id) == []


def test_an_invitation_makes_an_account(configure: Configure, idp: Idp, accounts: AccountStore) -> None:
    grace = accounts.users.create("grace", CLI, T0, org_role="admin")
    accounts.teams.create("vision", CLI, T0, administrator=grace.id)
    secret, _ = accounts.invitations.create("vision", "Ada@lab.example", "member", CLI, T0)
    other, _ = accounts.invitations.create("vision", "bob@lab.example", "member", CLI, T0)
    link, _ = accounts.invitations.create("vision", None, "member", CLI, T0)
    sso = configure()
    for wrong in (other, link, "nonsense", None):
        assert _sign_in(sso, idp, invitation=wrong) == Refused("no_account", "/")
    outcome = _sign_in(sso, idp, invitation=secret)
    assert isinstance(outcome, SignedIn)
    assert [member.name for member in accounts.members.of_team("vision")] == ["ada", "grace"]


def test_suspended_users_are_refused_and_deleted_ones_are_not_revived(
    configure: Configure, idp: Idp, accounts: AccountStore
) -> None:
    accounts.users.create("grace", CLI, T0, org_role="admin")
    sso = configure(auto_create=True)
    outcome = _sign_in(sso, idp)
    assert isinstance(outcome, SignedIn)
    accounts.users.update(outcome.user_id, CLI, T0, state="suspended")
    assert _sign_in(sso, idp) == Refused("suspended", "/")
    accounts.users.delete(outcome.user_id, CLI, T0)
    again = _sign_in(sso, idp)
    assert isinstance(again, SignedIn)
    assert again.user_id != outcome.user_id


def test_new_accounts_have_the_default_access(configure: Configure, idp: Idp, accounts: AccountStore) -> None:
    sso = configure(auto_create=True)
    accounts.settings.put({"default_access": "viewer"}, CLI, T0)
    outcome = _sign_in(sso, idp)
    assert isinstance(outcome, SignedIn)
    assert accounts.users.get(outcome.user_id).access == "viewer"


def test_groups_give_and_take_memberships(configure: Configure, idp: Idp, accounts: AccountStore) -> None:
    grace = accounts.users.create("grace", CLI, T0, org_role="admin")
    for team in ("vision", "speech", "robotics"):
        accounts.teams.create(team, CLI, T0, administrator=grace.id)
    groups = {
        "eyes": {"team": "vision", "role": "member"},
        "ears": {"team": "speech", "role": "viewer"},
        "chief": {"team": "speech", "role": "admin"},
        "gone": {"team": "dissolved", "role": "member"},
    }
    sso = configure(auto_create=True, group_claim="groups", group_map=groups)
    idp.changes = {"groups": ["eyes", "ears", "gone", "unknown", 7]}
    outcome = _sign_in(sso, idp)
    assert isinstance(outcome, SignedIn)

    def roles() -> dict[str, str]:
        return {
            team: member.role
            for team in ("vision", "speech", "robotics")
            for member in accounts.members.of_team(team)
            if member.user_id == outcome.user_id
        }

    assert roles() == {"vision": "member", "speech": "viewer"}
    accounts.members.add("robotics", "ada", "member", CLI, T0)
    idp.changes = {"groups": ["ears", "chief"]}
    _sign_in(sso, idp)
    assert roles() == {"speech": "admin", "robotics": "member"}

    accounts.members.remove("speech", "grace", CLI, T0)
    accounts.members.add("speech", "grace", "member", CLI, T0)
    idp.changes = {"groups": []}
    assert isinstance(_sign_in(sso, idp), SignedIn)
    assert roles() == {"speech": "admin", "robotics": "member"}, "the last administrator stays"
    accounts.members.set_role("speech", "grace", "admin", CLI, T0)
    _sign_in(sso, idp)
    assert roles() == {"robotics": "member"}


def test_a_group_makes_administrators(configure: Configure, idp: Idp, accounts: AccountStore) -> None:
    accounts.users.create("grace", CLI, T0, org_role="admin")
    sso = configure(auto_create=True, group_claim="groups", admin_group="chiefs")

    def role(*groups: str) -> str:
        idp.changes = {"groups": list(groups)}
        outcome = _sign_in(sso, idp)
        assert isinstance(outcome, SignedIn)
        return accounts.users.get(outcome.user_id).org_role

    assert role("eyes") == "member"
    assert role("chiefs") == "admin"
    assert role() == "member"
    ada = accounts.users.by_name("ada")
    accounts.users.update(ada.id, CLI, T0, org_role="admin")
    assert role() == "admin", "an appointment by hand stays"
    assert role("chiefs") == "admin"
    assert role() == "admin", "also after the group was there for a while"
    accounts.users.update(ada.id, CLI, T0, org_role="member")
    assert role("chiefs") == "admin"
    accounts.users.update(ada.id, CLI, T0, billing_role="admin")
    accounts.users.update(accounts.users.by_name("grace").id, CLI, T0, org_role="member")
    assert role() == "admin", "the last administrator stays"


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    ("claim", "token", "userinfo", "is_in_team"),
    [
        ("groups", {"groups": "eyes"}, {}, True),
        ("groups", {}, {"groups": ["eyes"]}, True),
        ("groups", {"groups": []}, {"groups": ["eyes"]}, False),
        ("realm_access.roles", {"realm_access": {"roles": ["eyes"]}}, {}, True),
        ("https://lab.example/groups", {"https://lab.example/groups": ["eyes"]}, {}, True),
        ("realm_access.roles", {"realm_access": ["eyes"]}, {}, False),
        ("groups", {"groups": {"eyes": True}}, {}, None),
        ("groups", {"_claim_names": {"groups": "elsewhere"}}, {}, None),
    ],
)
def test_where_providers_write_groups(
    configure: Configure,
    idp: Idp,
    accounts: AccountStore,
    claim: str,
    token: dict[str, Any],
    userinfo: dict[str, Any],
    is_in_team: bool | None,
) -> None:
    accounts.teams.create("vision", CLI, T0)
    groups = {"eyes": {"team": "vision", "role": "member"}}
    idp.changes, idp.userinfo = token, {"sub": "42", **userinfo}
    idp.document = {"userinfo_endpoint": "https://idp.example/userinfo"}
    outcome = _sign_in(configure(auto_create=True, group_claim=claim, group_map=groups), idp)
    assert isinstance(outcome, Refused if is_in_team is None else SignedIn)
    assert bool(accounts.members.of_team("vision")) is bool(is_in_team)


def test_without_a_claim_a_group_makes_nobody_an_administrator(configure: Configure) -> None:
    with pytest.raises(ValueError, match="admin_group needs group_claim"):
        configure(admin_group="chiefs")


def test_a_sign_in_ends_once(configure: Configure, idp: Idp) -> None:
    sso = configure(auto_create=True)
    begun = sso.start("lab")
    first = idp.authorize(begun.url)
    assert isinstance(sso.finish("lab", first, begun.cookie), SignedIn)
    assert sso.finish("lab", first, begun.cookie) == Refused("state")
    assert len(idp.token_requests) == 1


def test_a_sign_in_ends_once_even_at_the_same_time(configure: Configure, idp: Idp) -> None:
    sso = configure(auto_create=True)
    begun = sso.start("lab")
    parameters = idp.authorize(begun.url)
    outcomes: list[Outcome] = []
    threads = [
        threading.Thread(target=lambda: outcomes.append(sso.finish("lab", parameters, begun.cookie)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == [
        "Refused",
        "Refused",
        "Refused",
        "SignedIn",
    ]


def test_the_state_of_another_browser_signs_nobody_in(configure: Configure, idp: Idp) -> None:
    """Login CSRF: an attacker begins a sign-in and has a victim's browser finish it."""
    sso = configure(auto_create=True)
    attacker, victim = sso.start("lab"), sso.start("lab")
    parameters = idp.authorize(attacker.url)
    for cookie in (victim.cookie, None, "", "x" * 10_000):
        assert sso.finish("lab", parameters, cookie) == Refused("state")
    for state in ("", "nonsense", "x" * 10_000, victim.cookie):
        assert sso.finish("lab", {**parameters, "state": state}, attacker.cookie) == Refused("state")
    assert idp.token_requests == []


def test_a_sign_in_expires(configure: Configure, idp: Idp, clocks: Clocks, accounts: AccountStore) -> None:
    sso = configure(auto_create=True)
    begun = sso.start("lab")
    clocks.now_ms += 10 * MINUTE
    assert sso.finish("lab", idp.authorize(begun.url), begun.cookie) == Refused("state")
    assert accounts.logins.purge(clocks.now_ms) == 1


def test_mix_up_of_providers(configure: Configure, idp: Idp, site: Site) -> None:
    """An evil provider gets the code of an honest one, if we ask it for the tokens."""
    evil = {
        "id": "evil",
        "label": "Evil",
        "kind": "oidc",
        "issuer": "https://other.example",
        "client_id": "x",
    }
    sso = configure(evil, auto_create=True)
    begun = sso.start("lab")
    assert sso.finish("evil", idp.authorize(begun.url), begun.cookie) == Refused("state", "/")
    begun = sso.start("lab")
    wrong = idp.authorize(begun.url, iss="https://other.example")
    assert sso.finish("lab", wrong, begun.cookie) == Refused("provider", "/")
    begun = sso.start("lab")
    missing = idp.authorize(begun.url)
    del missing["iss"]
    assert sso.finish("lab", missing, begun.cookie) == Refused("provider", "/")
    assert idp.token_requests == []


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    ("header", "changes"),
    [
        ({"alg": "none"}, {}),
        ({"alg": "HS256", "kid": "rsa"}, {}),
        ({"alg": "HS256"}, {}),
        ({"alg": "PS256", "kid": "rsa"}, {}),
        ({}, {"nonce": "another"}),
        ({}, {"nonce": None}),
        ({}, {"nonce": 7}),
        ({}, {"aud": "another client"}),
        ({}, {"aud": None}),
        ({}, {"aud": ["another client"]}),
        ({}, {"aud": ["runvitals", "another client"]}),
        ({}, {"azp": "another client"}),
        ({}, {"iss": "https://other.example"}),
        ({}, {"iss": "https://idp.example/"}),
        ({}, {"iss": None}),
        ({}, {"exp": T0 / 1000 - 61}),
        ({}, {"exp": None}),
        ({}, {"exp": "2099"}),
        ({}, {"exp": True}),
        ({}, {"exp": float("nan")}),
        ({}, {"iat": T0 / 1000 + 61}),
        ({}, {"iat": None}),
        ({}, {"nbf": T0 / 1000 + 61}),
        ({}, {"sub": None}),
        ({}, {"sub": ""}),
        ({}, {"sub": 42}),
        ({}, {"sub": "x" * 256}),
        ({}, {"sub": "a\0b"}),
    ],
)
def test_id_tokens_that_prove_nothing(
    configure: Configure,
    idp: Idp,
    accounts: AccountStore,
    header: dict[str, Any],
    changes: dict[str, Any],
) -> None:
    sso = configure(auto_create=True)
    idp.header = header or idp.header
    idp.changes = changes
    assert _sign_in(sso, idp) == Refused("provider", "/")
    assert accounts.users.page() == []


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    ("header", "changes"),
    [
        ({"alg": "RS256"}, {}),
        ({"alg": "ES256", "kid": "ec"}, {}),
        ({"alg": "EdDSA", "kid": "ed"}, {}),
        ({"alg": "Ed25519", "kid": "ed"}, {}),
        ({}, {"aud": ["another client", "runvitals"], "azp": "runvitals"}),
        ({}, {"aud": ["runvitals"]}),
        ({}, {"exp": T0 / 1000 - 59, "iat": T0 / 1000 + 59}),
        ({}, {"email_verified": "true"}),
    ],
)
def test_id_tokens_that_are_valid(
    configure: Configure, idp: Idp, header: dict[str, Any], changes: dict[str, Any]
) -> None:
    idp.header = header or idp.header
    idp.changes = changes
    assert isinstance(_sign_in(configure(auto_create=True), idp), SignedIn)


@pytest.mark.parametrize("kind", ["sqlite"])
class TestProvider:
    """What the provider answers."""

    def test_a_token_of_another_sign_in_is_refused(self, configure: Configure, idp: Idp) -> None:
        sso = configure(auto_create=True)
        old = sso.start("lab")
        parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(old.url).query))
        replayed = idp.id_token(parameters["nonce"])
        idp.site.answers["/token"] = answer(
            {"access_token": "x", "token_type": "Bearer", "id_token": replayed}
        )
        assert isinstance(sso.finish("lab", idp.authorize(old.url), old.cookie), SignedIn)
        fresh = sso.start("lab")
        assert sso.finish("lab", idp.authorize(fresh.url), fresh.cookie) == Refused("provider", "/")

    def test_cancelling_is_told_apart(self, configure: Configure, idp: Idp) -> None:
        sso = configure()
        for error, code in (("access_denied", "denied"), ("server_error", "provider")):
            begun = sso.start("lab")
            parameters = idp.authorize(begun.url, error=error)
            assert sso.finish("lab", parameters, begun.cookie) == Refused(code, "/")

    def test_errors_of_the_token_endpoint(self, configure: Configure, idp: Idp, site: Site) -> None:
        sso = configure(auto_create=True)
        for broken in (
            (500, {}, b"oops"),
            (200, {}, b"<html>"),
            (200, {}, b"[]"),
            (400, {}, b'{"error": "invalid_grant"}'),
            (302, {"Location": "https://evil.example/"}, b""),
            (200, {}, b'{"access_token": "a"}'),
            (200, {}, b'{"access_token": "a", "id_token": 7}'),
            (200, {}, b'{"access_token": "a", "id_token": "a.b.c"}'),
            (200, {}, b"x" * 300_000),
        ):
            site.answers["/token"] = broken
            assert _sign_in(sso, idp) == Refused("provider", "/")

    def test_a_key_that_is_new_is_found(
        self, configure: Configure, idp: Idp, site: Site, clocks: Clocks
    ) -> None:
        sso = configure(auto_create=True)
        idp.keys = []
        assert _sign_in(sso, idp) == Refused("provider", "/")
        idp.keys = [RSA]
        before = len(site.requests)
        assert _sign_in(sso, idp) == Refused("provider", "/"), "asked within the last minute"
        assert not [path for path, _ in site.requests[before:] if path == "/keys"]
        clocks.now_ms += MINUTE
        idp.now_s += 60
        assert isinstance(_sign_in(sso, idp), SignedIn)

    def test_what_an_issuer_publishes_is_cached(self, configure: Configure, idp: Idp, site: Site) -> None:
        sso = configure(auto_create=True)
        for _ in range(3):
            assert isinstance(_sign_in(sso, idp), SignedIn)
        paths = [path for path, _ in site.requests]
        assert (paths.count(DISCOVERY), paths.count("/keys")) == (1, 1)

    @pytest.mark.parametrize(
        "document",
        [
            {"issuer": "https://other.example"},
            {"issuer": "https://idp.example/"},
            {"jwks_uri": "https://127.0.0.1/keys"},
            {"jwks_uri": "http://idp.example/keys"},
            {"authorization_endpoint": "javascript:alert(1)"},
            {"authorization_endpoint": "http://idp.example/authorize"},
        ],
    )
    def test_discovery_documents_that_are_refused(
        self, configure: Configure, idp: Idp, document: dict[str, Any]
    ) -> None:
        idp.document = document
        with pytest.raises(ProviderFailed):
            configure().start("lab")

    def test_a_token_endpoint_inside_the_network_gets_no_secret(
        self, configure: Configure, idp: Idp, site: Site
    ) -> None:
        idp.document = {"token_endpoint": "https://10.0.0.1/token"}
        assert _sign_in(configure(auto_create=True), idp) == Refused("provider", "/")
        assert {address for address, _ in site.reached} == {"93.184.215.14"}

    def test_the_address_may_be_in_the_user_information(self, configure: Configure, idp: Idp) -> None:
        idp.document = {"userinfo_endpoint": "https://idp.example/userinfo"}
        idp.claims = {}
        idp.userinfo = {"sub": "42", "email": "ada@lab.example", "email_verified": True}
        assert isinstance(_sign_in(configure(auto_create=["lab.example"]), idp), SignedIn)
        idp.userinfo["sub"] = "43"
        assert _sign_in(configure(auto_create=True), idp) == Refused("provider", "/")

    def test_the_secret_is_shown_as_the_client_was_registered(self, configure: Configure, idp: Idp) -> None:
        both = ["client_secret_post", "client_secret_basic"]
        idp.document = {"token_endpoint_auth_methods_supported": both}
        sso = configure(auto_create=True)
        for idp.auth_method in both:
            assert isinstance(_sign_in(sso, idp), SignedIn)

    def test_an_issuer_that_failed_is_left_alone_and_delays_no_other(
        self, configure: Configure, idp: Idp, site: Site, clocks: Clocks, caplog: pytest.LogCaptureFixture
    ) -> None:
        found, asking, goes_on = site.answers[DISCOVERY], threading.Event(), threading.Event()
        other = {"issuer": "https://other.example", "jwks_uri": "https://other.example/keys"}
        other |= {"authorization_endpoint": "https://other.example/authorize"}

        def slow_at_one(handler: BaseHTTPRequestHandler) -> Answer:
            if handler.headers["Host"] == "other.example":
                return answer(other)
            asking.set()
            goes_on.wait(PATIENCE_S)
            return 503, {}, b""

        site.answers[DISCOVERY] = slow_at_one
        second = {"id": "other", "label": "Other", "kind": "oidc", "client_id": "x"}
        sso = configure({**second, "issuer": other["issuer"]})
        with ThreadPoolExecutor(2) as threads:
            waiting = [threads.submit(sso.start, "lab") for _ in range(2)]
            assert asking.wait(PATIENCE_S)
            assert sso.start("other").url
            goes_on.set()
            assert all("503" in str(each.exception(PATIENCE_S)) for each in waiting)
        asked = [headers["Host"] for path, headers in site.requests if path == DISCOVERY]
        assert sorted(asked) == ["idp.example", "other.example"], "the second had the answer of the first"
        assert "sign-in by lab cannot begin: https://idp.example" in caplog.text
        site.answers[DISCOVERY] = found
        clocks.now_ms += 5000
        assert sso.start("lab").url

    def test_without_its_key_file_a_server_still_names_its_providers(
        self, configure: Configure, accounts: AccountStore
    ) -> None:
        sso, box = configure(), SecretBox({"other": bytes(32)})
        lab = {"id": "lab", "label": "Lab", "kind": "oidc", "issuer": "https://idp.example"}
        stored = stored_providers([{**lab, "client_id": "x", "client_secret": "y"}], [], box)
        accounts.settings.put({"providers": stored}, CLI, T0, secret=frozenset(("providers",)))
        assert [provider.label for provider in sso.providers()] == ["Lab"]
        with pytest.raises(ProviderFailed, match="enter it again"):
            sso.start("lab")

    def test_unknown_providers(self, configure: Configure) -> None:
        sso = configure()
        with pytest.raises(UnknownProvider):
            sso.start("nonsense")
        with pytest.raises(UnknownProvider):
            sso.finish("nonsense", {}, None)


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:x",
        "",
        "x",
        "/a\nb",
        "/\t/e",
        "/a\\b",
        "/../other",
        "/a/.%2E?b",
        "/a/%2e%2e",
    ],
)
def test_paths_that_lead_elsewhere(path: str) -> None:
    assert local_path(path) == "/"


@pytest.mark.parametrize("path", ["/a..b/...", "/runs?q=/../x", "/a#/..", "/.a/%2e"])
def test_paths_of_this_server(path: str) -> None:
    assert local_path(path) == path
