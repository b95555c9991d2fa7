"""Sign-ups, one-time links, profiles, searches and sign-ins of devices, on both databases."""

from __future__ import annotations

import pytest

from runvitals.model.durations import DAY_MS
from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.device_logins import LIFE_MS
from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.store.errors import NoLongerValid, NotFound

T0 = 1_800_000_000_000


def test_the_newest_sign_up_of_an_address_is_found(accounts: AccountStore) -> None:
    for name in ("first", "second"):
        accounts.users.create(name, CLI, T0, address="ada@lab.example", hashed_password="$hash")
    user = accounts.users.unverified_by_address("ada@lab.example")
    assert user is not None
    assert user.name == "second"
    stored = accounts.credentials.password(user.id)
    assert stored is not None
    assert (stored.hash, stored.must_change) == ("$hash", False)
    accounts.emails.verify(accounts.emails.of_user(user.id)[0].id, CLI, T0)
    user = accounts.users.unverified_by_address("ada@lab.example")
    assert user is not None
    assert user.name == "first"


def test_a_link_can_be_looked_at_before_it_is_used(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    secret = accounts.one_time_tokens.create("reset_password", T0, user_id=user.id)
    for _ in range(2):
        assert accounts.one_time_tokens.peek(secret, "reset_password", T0).user_id == user.id
    with pytest.raises(NoLongerValid):
        accounts.one_time_tokens.peek(secret, "verify_email", T0)
    accounts.one_time_tokens.use(secret, "reset_password", T0)
    with pytest.raises(NoLongerValid):
        accounts.one_time_tokens.peek(secret, "reset_password", T0)


def test_what_a_clock_years_ahead_has_made_is_not_valid_for_years(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
    wrong_ms = T0 + 3650 * DAY_MS
    session = accounts.sessions.create(ada.id, wrong_ms, SessionLife(), method="password")
    link = accounts.one_time_tokens.create("reset_password", wrong_ms, user_id=ada.id)
    assert accounts.sessions.check(session, wrong_ms, SessionLife()) is not None
    accounts.one_time_tokens.peek(link, "reset_password", wrong_ms)
    assert accounts.sessions.check(session, T0, SessionLife()) is None
    with pytest.raises(NoLongerValid):
        accounts.one_time_tokens.peek(link, "reset_password", T0)


def test_users_are_searched_by_the_beginning_of_names(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0, display_name="Countess")
    accounts.users.create("adam", CLI, T0, display_name="100% Zed")
    accounts.users.create("waiting", CLI, T0, address="w@lab.example")
    assert [user.name for user in accounts.users.search("ADA", ada.id)] == ["ada", "adam"]
    assert [user.name for user in accounts.users.search("count", ada.id)] == ["ada"]
    assert [user.name for user in accounts.users.search("100%", ada.id)] == ["adam"]
    assert accounts.users.search("1_0", ada.id) == accounts.users.search("waiting", ada.id) == []


def test_fields_of_a_profile_are_merged(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0)
    accounts.profiles.put(ada.id, {"bio": "Counts", "default_entity_id": 7}, CLI, T0)
    profile = accounts.profiles.put(ada.id, {"display_name": "Ada L.", "locale": "de"}, CLI, T0)
    assert profile == accounts.profiles.get(ada.id)
    assert (profile.display_name, profile.default_entity_id) == ("Ada L.", 7)
    assert profile.fields == {"bio": "Counts", "locale": "de"}
    accounts.users.delete(ada.id, CLI, T0)
    with pytest.raises(NotFound):
        accounts.profiles.get(ada.id)


def test_a_sign_in_is_in_the_audit_log(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0)
    accounts.sessions.create(ada.id, T0, SessionLife(), method="password", by=CLI)
    (event,) = accounts.audit.page(AuditFilter(action="user.login"))
    assert event.after == {"method": "password"}


def test_a_device_is_answered_once_and_fetches_once(accounts: AccountStore) -> None:
    ada = accounts.users.create("ada", CLI, T0)
    secret, begun = accounts.device_logins.begin("box", "192.0.2.1", T0)
    assert accounts.device_logins.by_code(begun.code.lower().replace("-", " "), T0) == begun
    assert accounts.device_logins.of_device(secret, T0).user_id is None
    answered = accounts.device_logins.answer(begun.code, ada.id, "read", True, CLI, T0)
    assert (answered.user_id, answered.scope, answered.denied) == (ada.id, "read", False)
    with pytest.raises(NoLongerValid):
        accounts.device_logins.answer(begun.code, ada.id, "read", True, CLI, T0)
    accounts.device_logins.finish(answered.id)
    with pytest.raises(NoLongerValid):
        accounts.device_logins.finish(answered.id)
    with pytest.raises(NoLongerValid):
        accounts.device_logins.of_device(secret, T0)


def test_sign_ins_of_devices_end_and_go(accounts: AccountStore) -> None:
    secret, begun = accounts.device_logins.begin("box", "192.0.2.1", T0)
    with pytest.raises(NoLongerValid):
        accounts.device_logins.by_code(begun.code, T0 + LIFE_MS)
    with pytest.raises(NoLongerValid):
        accounts.device_logins.of_device(secret, T0 + LIFE_MS)
    _, next_one = accounts.device_logins.begin("box", "192.0.2.1", T0 + LIFE_MS)
    assert next_one.code != begun.code
