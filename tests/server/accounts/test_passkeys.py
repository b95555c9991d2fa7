"""Passkeys, with answers made byte by byte: what proves something, and all that must not."""

from __future__ import annotations

import threading
from typing import Any

import cbor2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runvitals.server.accounts.passkeys import (
    CHALLENGE_MS,
    PasskeyRefused,
    Passkeys,
    RelyingParty,
    relying_party,
)
from runvitals.server.accounts.storage.passkeys import MAX_PASSKEYS
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.errors import LimitReached, NameTaken
from tests.empty_metadata import new_metadata_store
from tests.patience import PATIENCE_S
from tests.server.accounts.authenticator import BACKUP, HAS_KEY, PRESENT, VERIFIED, Authenticator, text_of
from tests.server.database.conftest import address, empty, kind, metadata_store, postgresql

__all__ = ["address", "empty", "kind", "metadata_store", "postgresql"]

T0 = 1_800_000_000_000
ORIGIN = "https://runs.lab.example"
PARTY = RelyingParty("runs.lab.example", ORIGIN)
SESSION = 7


class Desk:
    """A user, a passkey of theirs, and the server that asks."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self.now_ms = T0
        self.accounts = metadata_store.accounts
        self.passkeys = Passkeys(self.accounts, bytes(32), lambda: self.now_ms)
        self.ada = self.user("ada")
        self.phone = Authenticator(ORIGIN)
        self.add(self.phone)

    def user(self, name: str) -> UserRow:
        return self.accounts.users.create(name, CLI, T0)

    def options(self, user: UserRow | None = None) -> dict[str, Any]:
        user = user or self.ada
        return self.passkeys.registration(PARTY, user.id, user.name, user.display_name, SESSION)

    def add(self, device: Authenticator, user: UserRow | None = None, **changes: Any) -> int:
        user = user or self.ada
        passkey = device.make(self.options(user), **changes)
        return self.passkeys.register(PARTY, user.id, SESSION, passkey, "phone", CLI).id

    def sign_in(self, credential: dict[str, Any]) -> int:
        return self.passkeys.sign_in(PARTY, credential)

    def ask(self) -> dict[str, Any]:
        return self.passkeys.signing_in(PARTY)


@pytest.fixture
def desk(metadata_store: MetadataStore) -> Desk:
    return Desk(metadata_store)


def test_a_passkey_signs_in_again_and_again(desk: Desk) -> None:
    for _ in range(3):
        assert desk.sign_in(desk.phone.answer(desk.ask())) == desk.ada.id
    (row,) = desk.accounts.passkeys.of_user(desk.ada.id)
    assert (row.sign_count, row.last_used_ms, row.transports) == (4, T0, "hybrid,internal")
    assert row.backed_up


def test_an_answer_counts_once(desk: Desk) -> None:
    for device in (desk.phone, Authenticator(ORIGIN, count=0)):
        if device is not desk.phone:
            desk.add(device)
        credential = device.answer(desk.ask())
        assert desk.sign_in(credential) == desk.ada.id
        with pytest.raises(PasskeyRefused, match="used already"):
            desk.sign_in(credential)
    desk.now_ms += CHALLENGE_MS
    desk.accounts.passkeys.purge(desk.now_ms)
    with pytest.raises(PasskeyRefused, match="has expired"):
        desk.sign_in(credential)


def test_of_equal_answers_at_the_same_time_one_counts(desk: Desk) -> None:
    device = Authenticator(ORIGIN, count=0)
    desk.add(device)
    credential = device.answer(desk.ask())
    results: list[str] = []
    barrier = threading.Barrier(4)

    def sign_in() -> None:
        barrier.wait(PATIENCE_S)
        try:
            desk.sign_in(credential)
        except PasskeyRefused:
            results.append("refused")
        else:
            results.append("signed in")

    threads = [threading.Thread(target=sign_in) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(results) == ["refused"] * 3 + ["signed in"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"origin": "https://evil.example"}, "origin"),
        ({"origin": "http://runs.lab.example"}, "origin"),
        ({"origin": "https://runs.lab.example:8443"}, "origin"),
        ({"origin": "https://runs.lab.example.evil.example"}, "origin"),
        ({"rp_id": "evil.example"}, "RP ID"),
        ({"rp_id": "lab.example"}, "RP ID"),
        ({"type": "webauthn.create"}, "client data type"),
        ({"cross_origin": True}, "another site"),
        ({"flags": VERIFIED}, "not present"),
        ({"flags": PRESENT}, "not verified"),
        ({"signature": b"0" * 70}, "not accepted"),
        ({"signature": b""}, "not accepted"),
        ({"key": Authenticator(ORIGIN).key}, "signature"),
        ({"handle": b"somebody else"}, "another user"),
        ({"handle": b""}, "another user"),
        ({"count": 1}, "went back"),
        ({"count": 0}, "went back"),
        ({"challenge": text_of(b"made up by the browser, and long enough")}, "made for something else"),
        ({"challenge": ""}, "made for something else"),
    ],
)
def test_what_proves_nothing(desk: Desk, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(PasskeyRefused, match=why):
        desk.sign_in(desk.phone.answer(desk.ask(), **changes))
    assert desk.sign_in(desk.phone.answer(desk.ask())) == desk.ada.id


def test_a_counter_that_does_not_go_up_is_refused(desk: Desk) -> None:
    copy = Authenticator(
        ORIGIN, desk.phone.count, desk.phone.key, desk.phone.credential_id, desk.phone.handle
    )
    assert desk.sign_in(desk.phone.answer(desk.ask())) == desk.ada.id
    with pytest.raises(PasskeyRefused, match="went back") as refused:
        desk.sign_in(copy.answer(desk.ask()))
    assert refused.value.user_id == desk.ada.id


def test_a_challenge_is_for_one_purpose_one_server_and_some_minutes(desk: Desk) -> None:
    grace = desk.user("grace")
    other = Passkeys(desk.accounts, b"k" * 32, lambda: desk.now_ms)
    asking = desk.passkeys.asking(PARTY, desk.ada.id, "confirm", verified=True)
    for options in (
        asking,
        desk.passkeys.asking(PARTY, grace.id, "confirm", verified=True),
        other.signing_in(PARTY),
        {**desk.options(), "rpId": PARTY.id},
    ):
        with pytest.raises(PasskeyRefused, match="made for something else"):
            desk.sign_in(desk.phone.answer(options))
    with pytest.raises(PasskeyRefused, match="made for something else"):
        desk.passkeys.confirm(PARTY, desk.ada.id, "second factor", desk.phone.answer(asking), verified=False)
    late = desk.ask()
    desk.now_ms += CHALLENGE_MS
    with pytest.raises(PasskeyRefused, match="has expired"):
        desk.sign_in(desk.phone.answer(late))


def test_a_question_to_a_user_is_answered_by_a_passkey_of_that_user(desk: Desk) -> None:
    grace = desk.user("grace")
    tablet = Authenticator(ORIGIN)
    desk.add(tablet, grace)
    options = desk.passkeys.asking(PARTY, desk.ada.id, "confirm", verified=True)
    assert [entry["id"] for entry in options["allowCredentials"]] == [text_of(desk.phone.credential_id)]
    with pytest.raises(PasskeyRefused, match="another user"):
        desk.passkeys.confirm(PARTY, desk.ada.id, "confirm", tablet.answer(options), verified=True)
    credential = desk.phone.answer(options, flags=PRESENT)
    with pytest.raises(PasskeyRefused, match="not verified"):
        desk.passkeys.confirm(PARTY, desk.ada.id, "confirm", credential, verified=True)
    desk.passkeys.confirm(PARTY, desk.ada.id, "confirm", desk.phone.answer(options), verified=True)


def test_a_passkey_that_was_removed_opens_nothing(desk: Desk) -> None:
    desk.accounts.credentials.set_password(desk.ada.id, "$hash", CLI, T0)
    (row,) = desk.accounts.passkeys.of_user(desk.ada.id)
    desk.accounts.passkeys.remove(desk.ada.id, row.id, CLI, T0)
    with pytest.raises(PasskeyRefused, match="not known here"):
        desk.sign_in(desk.phone.answer(desk.ask()))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"origin": "https://evil.example"}, "origin"),
        ({"rp_id": "evil.example"}, "RP ID"),
        ({"type": "webauthn.get"}, "client data type"),
        ({"cross_origin": True}, "another site"),
        ({"flags": PRESENT | HAS_KEY}, "not verified"),
        ({"flags": VERIFIED | HAS_KEY}, "not present"),
        ({"flags": PRESENT | VERIFIED}, "credential data"),
        ({"challenge": text_of(bytes(40))}, "made for something else"),
        ({"fmt": "tpm"}, "expected none"),
        ({"fmt": "made-up"}, "not accepted|expected none"),
        ({"fmt": "packed", "statement": {"alg": -7, "sig": b"0"}}, "not accepted"),
        ({"public_key": cbor2.dumps({1: 2, 3: -36, -1: 3, -2: bytes(66), -3: bytes(66)})}, "alg"),
        ({"public_key": b"nonsense"}, "not accepted"),
    ],
)
def test_what_is_not_registered(desk: Desk, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(PasskeyRefused, match=why):
        desk.add(Authenticator(ORIGIN), **changes)
    assert len(desk.accounts.passkeys.of_user(desk.ada.id)) == 1


def test_a_passkey_is_registered_once_by_the_session_that_asked(desk: Desk) -> None:
    passkey = Authenticator(ORIGIN).make(desk.options())
    with pytest.raises(PasskeyRefused, match="made for something else"):
        desk.passkeys.register(PARTY, desk.ada.id, SESSION + 1, passkey, "tablet", CLI)
    desk.passkeys.register(PARTY, desk.ada.id, SESSION, passkey, "tablet", CLI)
    with pytest.raises(PasskeyRefused, match="used already"):
        desk.passkeys.register(PARTY, desk.ada.id, SESSION, passkey, "tablet", CLI)
    with pytest.raises(NameTaken):
        desk.add(desk.phone, desk.user("grace"))
    with pytest.raises(ValueError, match="1 to 64 characters"):
        desk.passkeys.register(
            PARTY, desk.ada.id, SESSION, Authenticator(ORIGIN).make(desk.options()), " ", CLI
        )
    excluded = [entry["id"] for entry in desk.options()["excludeCredentials"]]
    assert text_of(desk.phone.credential_id) in excluded


def test_the_passkeys_of_a_user_are_limited(desk: Desk) -> None:
    for _ in range(MAX_PASSKEYS - 1):
        desk.add(Authenticator(ORIGIN))
    with pytest.raises(LimitReached):
        desk.add(Authenticator(ORIGIN))


def test_users_are_known_to_authenticators_by_a_random_handle(desk: Desk) -> None:
    first, again = desk.options()["user"], desk.options()["user"]
    other = desk.options(desk.user("grace"))["user"]
    assert first["id"] == again["id"] != other["id"]
    assert len(first["id"]) == 43


@pytest.mark.parametrize(
    ("url", "party"),
    [
        ("https://runs.lab.example", RelyingParty("runs.lab.example", "https://runs.lab.example")),
        ("https://Runs.lab.example:443/x", RelyingParty("runs.lab.example", "https://runs.lab.example")),
        ("https://runs.lab.example:8443", RelyingParty("runs.lab.example", "https://runs.lab.example:8443")),
        ("http://localhost:8900/", RelyingParty("localhost", "http://localhost:8900")),
        ("http://runs.lab.example", None),
        ("https://192.0.2.1", None),
        ("https://[2001:db8::1]", None),
        ("", None),
    ],
)
def test_the_relying_party_follows_the_address(url: str, party: RelyingParty | None) -> None:
    assert relying_party(url) == party


@pytest.fixture(scope="module")
def busy_desk(tmp_path_factory: pytest.TempPathFactory) -> Any:

    with new_metadata_store(tmp_path_factory.mktemp("desk") / "catalogue.db") as store:
        yield Desk(store)


_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=60), st.lists(st.text(), max_size=2)
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parent=st.sampled_from(
        ["id", "rawId", "type", "response", "clientDataJSON", "authenticatorData", "signature", "userHandle"]
    ),
    value=st.one_of(
        _VALUES, st.binary(max_size=200).map(text_of), st.dictionaries(st.text(), _VALUES, max_size=3)
    ),
)
def test_no_answer_breaks_the_server(busy_desk: Desk, parent: str, value: Any) -> None:
    credential = busy_desk.phone.answer(busy_desk.ask())
    target = credential if parent in credential else credential["response"]
    if target[parent] == value:
        return
    target[parent] = value
    try:
        assert busy_desk.sign_in(credential) == busy_desk.ada.id
    except PasskeyRefused:
        pass


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    attestation=st.one_of(
        st.binary(max_size=300),
        st.builds(
            lambda fmt, statement, data: cbor2.dumps({"fmt": fmt, "attStmt": statement, "authData": data}),
            st.one_of(st.sampled_from(["none", "packed"]), st.text(max_size=5), st.integers()),
            st.dictionaries(st.sampled_from(["alg", "sig", "x5c"]), st.one_of(st.binary(), st.integers())),
            st.one_of(st.binary(max_size=200), st.integers()),
        ),
    )
)
def test_no_registration_breaks_the_server(busy_desk: Desk, attestation: bytes) -> None:
    passkey = Authenticator(ORIGIN).make(busy_desk.options())
    passkey["response"]["attestationObject"] = text_of(attestation)
    with pytest.raises(PasskeyRefused):
        busy_desk.passkeys.register(PARTY, busy_desk.ada.id, SESSION, passkey, "fuzz", CLI)


def test_backup_flags_that_contradict_each_other_are_refused(desk: Desk) -> None:
    with pytest.raises(PasskeyRefused):
        desk.sign_in(desk.phone.answer(desk.ask(), flags=PRESENT | VERIFIED | (BACKUP & 0x10)))
