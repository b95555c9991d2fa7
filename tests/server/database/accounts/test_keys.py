from __future__ import annotations

import pytest

from runvitals.server.account_store import AccountStore
from runvitals.server.accounts.storage.keys import MAX_KEYS
from runvitals.server.accounts.storage.random_secrets import new_key, public_id
from runvitals.server.accounts.storage.sessions import SessionLife
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.store.errors import LimitReached, NameTaken, NoLongerValid, NotFound

T0 = 1_800_000_000_000
HOUR, DAY = 3_600_000, 86_400_000


def test_a_key_has_40_letters_and_a_checksum() -> None:
    key, shown = new_key()
    prefix, _, body = key.partition("-")
    assert (prefix, len(body), body.isalnum()) == ("rvt", 40, True)
    assert public_id(key) == shown
    swapped = key[:-1] + ("a" if key[-1] != "a" else "b")
    for wrong in (key[:-1], key + "a", swapped, "", "rvt-" + "é" * 40):
        assert public_id(wrong) is None


def test_a_key_is_checked_listed_and_revoked(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    team = accounts.teams.create("vision", CLI, T0, administrator=user.id)
    secret, key = accounts.keys.create("laptop", CLI, T0, user_id=user.id, scope="ingest", entities=[team.id])
    checked = accounts.keys.check(secret, T0 + 1)
    assert checked == key
    assert (key.scope, key.entities) == ("ingest", {team.id})
    assert accounts.keys.by_public_id(key.public_id).last_used_ms == T0 + 1
    assert accounts.keys.check(new_key()[0], T0) is None
    forged = new_key()[0]
    assert accounts.keys.check(forged[:4] + key.public_id + forged[12:], T0) is None
    assert [row.id for row in accounts.keys.all(user_id=user.id)] == [key.id]
    accounts.keys.revoke(key.id, CLI, T0)
    accounts.keys.revoke(key.id, CLI, T0)
    assert accounts.keys.check(secret, T0) is None
    assert accounts.keys.all(user_id=user.id) == []
    assert [row.revoked_ms for row in accounts.keys.all(revoked=True)] == [T0]


def test_a_list_of_keys_has_the_teams_of_each(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    teams = [accounts.teams.create(name, CLI, T0).id for name in ("vision", "speech")]
    created = [
        accounts.keys.create("laptop", CLI, T0, user_id=user.id, entities=entities)[1]
        for entities in ([], teams, teams[:1])
    ]
    other = accounts.users.create("bo", CLI, T0)
    accounts.keys.create("other", CLI, T0, user_id=other.id, entities=teams)
    assert accounts.keys.all(user_id=user.id) == created
    assert accounts.entity_names({*teams, 999}) == dict(zip(teams, ("vision", "speech"), strict=True))
    assert accounts.entity_names(()) == {}


def test_an_expired_key_is_not_valid(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    secret, _ = accounts.keys.create("laptop", CLI, T0, user_id=user.id, expires_ms=T0 + DAY)
    assert accounts.keys.check(secret, T0 + DAY - 1) is not None
    assert accounts.keys.check(secret, T0 + DAY) is None
    with pytest.raises(ValueError, match="expired already"):
        accounts.keys.create("laptop", CLI, T0, user_id=user.id, expires_ms=T0)
    with pytest.raises(ValueError, match="invalid scope 'all'"):
        accounts.keys.create("laptop", CLI, T0, user_id=user.id, scope="all")


def test_rotation_overlaps(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    old, key = accounts.keys.create("laptop", CLI, T0, user_id=user.id, scope="read")
    new, rotated = accounts.keys.rotate(key.id, CLI, T0, overlap_ms=2 * HOUR)
    assert (rotated.name, rotated.scope, rotated.user_id) == ("laptop", "read", user.id)
    assert accounts.keys.check(old, T0 + HOUR) is not None
    assert accounts.keys.check(old, T0 + 2 * HOUR) is None
    assert accounts.keys.check(new, T0 + 2 * HOUR) is not None
    with pytest.raises(NotFound):
        accounts.keys.rotate(key.id, CLI, T0 + 2 * HOUR)
    with pytest.raises(ValueError, match="expected 0 to 168 hours"):
        accounts.keys.rotate(rotated.id, CLI, T0, overlap_ms=169 * HOUR)


def test_a_key_cannot_rotate_itself_into_keys_without_end(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    _, key = accounts.keys.create("laptop", CLI, T0, user_id=user.id)
    for _ in range(2 * MAX_KEYS - 1):
        _, key = accounts.keys.rotate(key.id, CLI, T0, overlap_ms=HOUR)
    with pytest.raises(LimitReached, match="too many keys"):
        accounts.keys.rotate(key.id, CLI, T0, overlap_ms=HOUR)
    assert len(accounts.keys.all(user_id=user.id)) == 2 * MAX_KEYS
    accounts.keys.rotate(key.id, CLI, T0, overlap_ms=0)  # takes the place of the old one
    accounts.keys.rotate(accounts.keys.all(user_id=user.id)[-1].id, CLI, T0 + HOUR, overlap_ms=HOUR)


def test_service_accounts(accounts: AccountStore) -> None:
    team = accounts.teams.create("vision", CLI, T0)
    account = accounts.service_accounts.create("ci", team.id, CLI, T0)
    with pytest.raises(NameTaken):
        accounts.service_accounts.create("ci", team.id, CLI, T0)
    everywhere = accounts.service_accounts.create("ci", None, CLI, T0, default_team_id=team.id)
    with pytest.raises(ValueError, match="needs a default team"):
        accounts.service_accounts.create("other", None, CLI, T0)
    assert accounts.service_accounts.all() == [account, everywhere]
    assert accounts.service_accounts.all(team.id) == [account]
    secret, key = accounts.keys.create("runner", CLI, T0, service_account_id=account.id)
    assert key.user_id is None
    assert accounts.service_grants(account.id) is not None
    accounts.service_accounts.set_disabled(account.id, True, CLI, T0)
    assert accounts.service_grants(account.id) is None
    accounts.service_accounts.set_disabled(account.id, False, CLI, T0)
    accounts.teams.delete("vision", CLI, T0)
    assert accounts.service_grants(account.id) is None
    accounts.service_accounts.delete(account.id, CLI, T0)
    assert accounts.keys.check(secret, T0) is None
    accounts.service_accounts.create("ci", team.id, CLI, T0)


def test_sessions_end_when_unused_and_after_their_life(accounts: AccountStore) -> None:
    user, life = accounts.users.create("ada", CLI, T0), SessionLife(idle_ms=2 * HOUR, total_ms=5 * HOUR)
    secret = accounts.sessions.create(user.id, T0, life, method="password", ip="192.0.2.1", agent="x" * 999)
    assert accounts.sessions.check(secret, T0 + 2 * HOUR, life) is None
    for hour in (1, 2, 3, 4):
        row = accounts.sessions.check(secret, T0 + hour * HOUR, life)
        assert row is not None
    assert accounts.sessions.check(secret, T0 + 5 * HOUR, life) is None
    assert accounts.sessions.check("wrong", T0, life) is None
    assert accounts.sessions.purge(T0 + 5 * HOUR) == 0
    assert accounts.sessions.purge(T0 + 5 * HOUR + 1) == 1


def test_sessions_are_renewed_and_ended(accounts: AccountStore) -> None:
    user, life = accounts.users.create("ada", CLI, T0), SessionLife()
    secrets = [accounts.sessions.create(user.id, T0, life, method="password") for _ in range(3)]
    first, second, third = reversed(accounts.sessions.of_user(user.id, T0))
    renewed = accounts.sessions.renew(first.id, T0, life)
    assert accounts.sessions.check(secrets[0], T0, life) is None
    assert accounts.sessions.check(renewed, T0, life) is not None
    assert accounts.sessions.end(user.id, CLI, T0, only=second.id) == 1
    assert accounts.sessions.end(user.id + 1, CLI, T0, only=third.id) == 0
    assert accounts.sessions.end(user.id, CLI, T0, keep=first.id) == 1
    assert [row.id for row in accounts.sessions.of_user(user.id, T0)] == [first.id]
    with pytest.raises(NotFound):
        accounts.sessions.renew(third.id, T0, life)


def test_a_new_password_ends_the_other_sessions(accounts: AccountStore) -> None:
    user, life = accounts.users.create("ada", CLI, T0), SessionLife()
    for _ in range(2):
        accounts.sessions.create(user.id, T0, life, method="password")
    newest, _ = accounts.sessions.of_user(user.id, T0)
    accounts.credentials.set_password(user.id, "hash-1", CLI, T0, keep_session=newest.id)
    assert [row.id for row in accounts.sessions.of_user(user.id, T0)] == [newest.id]
    accounts.credentials.rehash(user.id, "hash-0", "hash-2")
    accounts.credentials.rehash(user.id, "hash-1", "hash-3")
    stored = accounts.credentials.password(user.id)
    assert stored is not None
    assert stored.hash == "hash-3"


def test_a_one_time_link_works_once(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    older = accounts.one_time_tokens.create("reset_password", T0, user_id=user.id)
    secret = accounts.one_time_tokens.create("reset_password", T0, user_id=user.id)
    for wrong, purpose, now_ms in (
        (older, "reset_password", T0),
        (secret, "setup", T0),
        (secret, "reset_password", T0 + HOUR),
    ):
        with pytest.raises(NoLongerValid):
            accounts.one_time_tokens.use(wrong, purpose, now_ms)  # type: ignore[arg-type]
    assert accounts.one_time_tokens.use(secret, "reset_password", T0).user_id == user.id
    with pytest.raises(NoLongerValid):
        accounts.one_time_tokens.use(secret, "reset_password", T0)
    assert accounts.one_time_tokens.purge(T0 + HOUR + 1) == 1


def test_second_factors(accounts: AccountStore) -> None:
    user = accounts.users.create("ada", CLI, T0)
    assert accounts.credentials.second_factor(user.id) is None
    accounts.credentials.begin_second_factor(user.id, b"sealed", T0)
    accounts.credentials.confirm_second_factor(user.id, 100, [b"one", b"two"], CLI, T0)
    factor = accounts.credentials.second_factor(user.id)
    assert factor is not None
    assert (factor.sealed_secret, factor.confirmed_ms) == (b"sealed", T0)
    assert not accounts.credentials.use_step(user.id, 100)
    assert accounts.credentials.use_step(user.id, 101)
    assert not accounts.credentials.use_step(user.id, 101)
    assert accounts.credentials.use_recovery_code(user.id, b"one", CLI, T0)
    assert not accounts.credentials.use_recovery_code(user.id, b"one", CLI, T0)
    assert accounts.credentials.recovery_codes_left(user.id) == 1
    accounts.credentials.remove_second_factor(user.id, CLI, T0)
    assert accounts.credentials.second_factor(user.id) is None
    assert accounts.credentials.recovery_codes_left(user.id) == 0


def test_settings_that_are_secret_are_not_in_the_audit_log(accounts: AccountStore) -> None:
    settings = {"signup": "open", "smtp_url": "smtp://u:pw@host"}
    accounts.settings.put(settings, CLI, T0, frozenset(("smtp_url",)))
    accounts.settings.put({"signup": "closed"}, CLI, T0)
    assert accounts.settings.all() == {"signup": "closed", "smtp_url": "smtp://u:pw@host"}
    newest, oldest = accounts.audit.page(AuditFilter(action="org.settings"))
    assert (newest.before, newest.after) == ({"signup": "open"}, {"signup": "closed"})
    assert oldest.after == {"signup": "open", "smtp_url": "…"}
