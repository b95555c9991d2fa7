"""Second factors after a provider, and confirming who one is by signing in again there."""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.sign_on.outcomes import Confirmed, Linked, Refused, SecondFactorAsked, SignedIn
from runvitals.server.sign_on.sign_on import SingleSignOn
from tests.server.sign_on.conftest import T0, Clocks, Configure
from tests.server.sign_on.provider import Idp
from tests.server.sign_on.test_sign_on import _sign_in

SESSION = 12


def _linked(
    configure: Configure, idp: Idp, accounts: AccountStore, **values: Any
) -> tuple[SingleSignOn, int]:
    """Ada, who signs in at the provider."""
    sso = configure(**values)
    ada = accounts.users.create("ada", CLI, T0)
    assert isinstance(_sign_in(sso, idp, link_user_id=ada.id), Linked)
    return sso, ada.id


@pytest.mark.parametrize(
    ("trusted", "claims", "asked"),
    [
        (False, {}, True),
        (False, {"amr": ["pwd", "mfa"]}, True),
        (True, {}, True),
        (True, {"amr": ["pwd"]}, True),
        (True, {"amr": "mfa"}, True),
        (True, {"amr": ["pwd", "mfa"]}, False),
        (True, {"acr": "1"}, True),
        (True, {"acr": ["phr"]}, True),
        (True, {"acr": "https://refeds.org/profile/mfa"}, False),
        (True, {"acr": "phr"}, False),
    ],
)
def test_the_second_factor_is_asked_for_unless_the_provider_is_trusted_to_have_asked(
    configure: Configure,
    idp: Idp,
    accounts: AccountStore,
    with_second_factor: set[int],
    trusted: bool,
    claims: dict[str, Any],
    asked: bool,
) -> None:
    sso, ada = _linked(configure, idp, accounts, trust_second_factor=trusted)
    assert isinstance(_sign_in(sso, idp), SignedIn)
    with_second_factor.add(ada)
    idp.changes = claims
    outcome = _sign_in(sso, idp, next_path="/ada")
    expected = SecondFactorAsked(ada, "lab", "/ada", None) if asked else SignedIn(ada, "lab", False, "/ada")
    assert outcome == expected


def test_a_login_is_linked_by_address_only_after_the_second_factor(
    configure: Configure, idp: Idp, accounts: AccountStore, with_second_factor: set[int]
) -> None:
    sso = configure(trust_email=True)
    ada = accounts.users.create("ada", CLI, T0, address="ada@lab.example", verified=True)
    with_second_factor.add(ada.id)
    outcome = _sign_in(sso, idp)
    assert isinstance(outcome, SecondFactorAsked)
    assert accounts.logins.of_user(ada.id) == []
    assert outcome.offer is not None
    assert sso.confirm(outcome.offer).login.user_id == ada.id
    assert _sign_in(sso, idp) == SecondFactorAsked(ada.id, "lab", "/", None)


def test_no_login_is_linked_to_a_suspended_user(
    configure: Configure, idp: Idp, accounts: AccountStore, with_second_factor: set[int]
) -> None:
    sso = configure(trust_email=True, auto_create=True)
    ada = accounts.users.create("ada", CLI, T0, address="ada@lab.example", verified=True)
    accounts.users.update(ada.id, CLI, T0, state="suspended")
    assert _sign_in(sso, idp) == Refused("suspended", "/")
    with_second_factor.add(ada.id)
    assert _sign_in(sso, idp) == Refused("suspended", "/")
    assert accounts.logins.of_user(ada.id) == []


def _confirm(sso: SingleSignOn, idp: Idp, user_id: int) -> object:
    return _sign_in(
        sso, idp, link_user_id=user_id, confirmed_session_id=SESSION, next_path="/-/settings/keys"
    )


def test_a_user_confirms_by_signing_in_again(configure: Configure, idp: Idp, accounts: AccountStore) -> None:
    sso, ada = _linked(configure, idp, accounts)
    begun = sso.start("lab", link_user_id=ada, confirmed_session_id=SESSION)
    parameters = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(begun.url).query))
    assert (parameters["prompt"], parameters["max_age"]) == ("login", "0")
    idp.changes = {"auth_time": T0 / 1000}
    assert _confirm(sso, idp, ada) == Confirmed(SESSION, "/-/settings/keys")


@pytest.mark.parametrize("auth_time", [None, T0 / 1000 - 3600, 0])
def test_a_provider_that_did_not_ask_again_confirms_nothing(
    configure: Configure, idp: Idp, accounts: AccountStore, auth_time: float | None
) -> None:
    sso, ada = _linked(configure, idp, accounts)
    idp.changes = {"auth_time": auth_time}
    assert _confirm(sso, idp, ada) == Refused("earlier", "/-/settings/keys")


def test_somebody_else_confirms_nothing(
    configure: Configure, idp: Idp, accounts: AccountStore, clocks: Clocks
) -> None:
    sso, ada = _linked(configure, idp, accounts)
    idp.changes = {"auth_time": T0 / 1000, "sub": "43"}
    assert _confirm(sso, idp, ada) == Refused("other", "/-/settings/keys")
    grace = accounts.users.create("grace", CLI, T0)
    idp.changes = {"auth_time": T0 / 1000}
    assert _confirm(sso, idp, grace.id) == Refused("other", "/-/settings/keys")
    assert accounts.logins.of_user(grace.id) == []
