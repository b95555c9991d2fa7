"""Tokens that programs show instead of a key."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.server.account_store import AccountStore
from runvitals.server.audit.storage.audit import CLI, AuditFilter
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.sign_on.discovery import Discovery
from runvitals.server.sign_on.service_tokens import CACHED_MS, ServiceTokens, looks_like_token
from runvitals.server.sign_on.storage.jwt_issuers import ExternalIdentity
from runvitals.server.sign_on.tokens import checked_keys
from runvitals.store.errors import NameTaken, NotFound
from tests.server.outbound.site import Site
from tests.server.sign_on.conftest import T0, Clocks
from tests.server.sign_on.provider import RSA, Idp, sign

ISSUER = "https://idp.example"
SUBJECT = "repo:lab/vision:ref:refs/heads/main"
HEADER = {"alg": "RS256", "kid": "rsa"}


def _token(**changes: Any) -> str:
    header = changes.pop("header", HEADER)
    now_s = T0 / 1000
    claims = {"iss": ISSUER, "aud": "runs", "sub": SUBJECT, "iat": now_s, "exp": now_s + 600, **changes}
    return sign({name: value for name, value in claims.items() if value is not None}, header)


@pytest.fixture
def tokens(metadata_store: MetadataStore, site: Site, idp: Idp, clocks: Clocks) -> ServiceTokens:
    discovery = Discovery(site.fetcher(), clocks.monotonic)
    return ServiceTokens(metadata_store, discovery, clocks.wall_ms)


@pytest.fixture
def robot(accounts: AccountStore) -> int:
    """A service account with that subject."""
    team = accounts.teams.create("vision", CLI, T0)
    account = accounts.service_accounts.create("ci", team.id, CLI, T0)
    issuer = accounts.jwt_issuers.create("GitHub Actions", ISSUER, "runs", CLI, T0)
    accounts.jwt_issuers.assign(account.id, issuer.id, SUBJECT, CLI, T0)
    return account.id


def test_a_token_is_a_service_account(tokens: ServiceTokens, robot: int) -> None:
    assert tokens.account(_token()) == robot
    assert tokens.account(_token(aud=["other", "runs"])) == robot
    assert tokens.account(_token(header={"alg": "ES256", "kid": "ec"})) == robot


def test_an_issuer_that_cannot_be_reached_has_pasted_keys(
    tokens: ServiceTokens, robot: int, accounts: AccountStore, site: Site
) -> None:
    [issuer] = accounts.jwt_issuers.all()
    site.names.clear()
    assert tokens.account(_token()) is None
    private = {"keys": [RSA.as_dict(private=True), {"kty": "oct", "k": "c2VjcmV0"}]}
    keys = checked_keys(json.dumps(private))
    assert [sorted(key) for key in json.loads(keys)["keys"]] == [["e", "kid", "kty", "n"]]
    accounts.jwt_issuers.update(issuer.id, CLI, T0, pasted_keys=keys)
    assert tokens.account(_token()) == robot
    assert tokens.account(_token(header={"alg": "ES256", "kid": "ec"})) is None
    assert site.requests == []
    event = accounts.audit.page(AuditFilter(action="issuer.update"))[0]
    assert (event.before, len(event.after["pasted_keys"])) == ({"pasted_keys": None}, 64)
    accounts.jwt_issuers.update(issuer.id, CLI, T0, pasted_keys="")
    assert accounts.jwt_issuers.all()[0].pasted_keys is None


@pytest.mark.parametrize("text", ["", "x", "[]", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "AA"}]}'])
def test_what_is_no_document_of_public_keys(text: str) -> None:
    with pytest.raises(ValueError, match=r"JWKS|sign tokens"):
        checked_keys(text)


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    "changes",
    [
        {"sub": "repo:lab/vision:ref:refs/heads/other"},
        {"sub": SUBJECT.upper()},
        {"sub": None},
        {"sub": ["x"]},
        {"aud": "other"},
        {"aud": None},
        {"iss": "https://other.example"},
        {"iss": f"{ISSUER}/"},
        {"iss": None},
        {"iss": 7},
        {"exp": T0 / 1000 - 61},
        {"exp": T0 / 1000 + 25 * 3600},
        {"exp": None},
        {"iat": T0 / 1000 + 61},
        {"nbf": T0 / 1000 + 61},
        {"header": {"alg": "none"}},
        {"header": {"alg": "HS256", "kid": "rsa"}},
        {"header": {"alg": "PS256", "kid": "rsa"}},
    ],
)
def test_tokens_that_prove_nothing(
    tokens: ServiceTokens, robot: int, changes: dict[str, Any], site: Site
) -> None:
    assert tokens.account(_token(**changes)) is None


@pytest.mark.parametrize("kind", ["sqlite"])
@pytest.mark.parametrize(
    "text", ["", "rvt-abc", "a.b.c", "eyJ.e30.x", "é", "eyJ" + "x" * 20_000, "..", "[].[].[]"]
)
def test_what_is_no_token(tokens: ServiceTokens, robot: int, text: str) -> None:
    assert tokens.account(text) is None


def test_unknown_issuers_are_never_asked(tokens: ServiceTokens, robot: int, site: Site) -> None:
    assert tokens.account(_token(iss="https://other.example")) is None
    assert site.reached == []


def test_what_is_disabled_is_noticed_after_a_few_seconds(
    tokens: ServiceTokens, robot: int, accounts: AccountStore, clocks: Clocks
) -> None:
    (issuer,) = accounts.jwt_issuers.all()
    for disable, enable in (
        (
            lambda: accounts.jwt_issuers.update(issuer.id, CLI, T0, enabled=False),
            lambda: accounts.jwt_issuers.update(issuer.id, CLI, T0, enabled=True),
        ),
        (
            lambda: accounts.service_accounts.set_disabled(robot, True, CLI, T0),
            lambda: accounts.service_accounts.set_disabled(robot, False, CLI, T0),
        ),
    ):
        assert tokens.account(_token()) == robot
        disable()
        clocks.now_ms += CACHED_MS
        assert tokens.account(_token()) is None
        enable()
        assert tokens.account(_token()) == robot


def test_a_cached_token_expires(tokens: ServiceTokens, robot: int, clocks: Clocks) -> None:
    token = _token(exp=T0 / 1000 - 58)
    assert tokens.account(token) == robot
    clocks.now_ms += 2000
    assert tokens.account(token) is None


def test_a_subject_belongs_to_one_account(accounts: AccountStore, robot: int) -> None:
    (issuer,) = accounts.jwt_issuers.all()
    team = accounts.teams.create("speech", CLI, T0)
    other = accounts.service_accounts.create("ci", team.id, CLI, T0)
    with pytest.raises(NameTaken):
        accounts.jwt_issuers.assign(other.id, issuer.id, SUBJECT, CLI, T0)
    with pytest.raises(NameTaken):
        accounts.jwt_issuers.create("again", ISSUER, "runs", CLI, T0)
    with pytest.raises(ValueError, match="service accounts use this issuer"):
        accounts.jwt_issuers.delete(issuer.id, CLI, T0)
    accounts.jwt_issuers.assign(robot, issuer.id, "another", CLI, T0)
    accounts.jwt_issuers.assign(other.id, issuer.id, SUBJECT, CLI, T0)
    assert {row.service_account_id: row.subject for row in accounts.jwt_issuers.identities(issuer.id)} == {
        robot: "another",
        other.id: SUBJECT,
    }


def test_keys_are_told_apart_cheaply() -> None:
    assert looks_like_token(_token())
    assert not looks_like_token("rvt-0123456789")


def test_subjects_with_wildcards(tokens: ServiceTokens, robot: int, accounts: AccountStore) -> None:
    team = accounts.teams.by_name("vision")
    (issuer,) = accounts.jwt_issuers.all()

    def acting_as(name: str, subject: str) -> int:
        account = accounts.service_accounts.create(name, team.id, CLI, T0)
        accounts.jwt_issuers.assign(account.id, issuer.id, subject, CLI, T0)
        return account.id

    vision = acting_as("vision", "repo:lab/vision:*")
    heads = acting_as("heads", "repo:lab/*:ref:refs/heads/*")
    assert tokens.account(_token()) == robot, "the exact subject takes precedence"
    assert tokens.account(_token(sub="repo:lab/vision:ref:refs/heads/dev")) == heads
    assert tokens.account(_token(sub="repo:lab/vision:pull_request")) == vision
    assert tokens.account(_token(sub="repo:lab/speech:ref:refs/heads/main")) == heads
    for other in (
        "repo:lab/speech:pull_request",
        "repo:lab/vision2:x",
        "xrepo:lab/vision:x",
        "repo:lab/vision",
    ):
        assert tokens.account(_token(sub=other)) is None, other
    accounts.service_accounts.set_disabled(robot, True, CLI, T0)
    assert accounts.jwt_issuers.service_account(issuer.id, SUBJECT) is None, "not the next that fits"


@given(pattern=st.text("ab*", max_size=8), subject=st.text("ab\n", max_size=10))
def test_a_star_stands_for_any_characters(pattern: str, subject: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert ExternalIdentity(1, 1, pattern).fits(subject) == bool(re.fullmatch(expression, subject, re.DOTALL))


def test_a_long_subject_does_not_keep_the_server_busy() -> None:
    """A regular expression would take hours: one step for every way to divide the subject."""
    assert not ExternalIdentity(1, 1, "repo:*-*-*-*:main").fits("repo:" + "-" * 10_000)


@pytest.mark.parametrize("subject", ["*", "*:lab", "a*b*c*d*e*f", "", "x" * 501])
def test_subjects_that_are_refused(robot: int, accounts: AccountStore, subject: str) -> None:
    (issuer,) = accounts.jwt_issuers.all()
    with pytest.raises(ValueError, match="subject"):
        accounts.jwt_issuers.assign(robot, issuer.id, subject, CLI, T0)


def test_a_subject_is_removed(tokens: ServiceTokens, robot: int, accounts: AccountStore) -> None:
    (issuer,) = accounts.jwt_issuers.all()
    accounts.jwt_issuers.unassign(issuer.id, SUBJECT, CLI, T0)
    assert accounts.jwt_issuers.identities(issuer.id) == []
    event, _ = accounts.audit.page(AuditFilter(action="service_account.update"))
    assert (event.entity, event.target, event.before) == (
        "vision",
        "ci",
        {"issuer": ISSUER, "subject": SUBJECT},
    )
    assert tokens.account(_token()) is None
    with pytest.raises(NotFound):
        accounts.jwt_issuers.unassign(issuer.id, SUBJECT, CLI, T0)


def test_a_subject_that_no_database_can_store(
    tokens: ServiceTokens, robot: int, accounts: AccountStore
) -> None:
    (issuer,) = accounts.jwt_issuers.all()
    accounts.jwt_issuers.assign(robot, issuer.id, "repo:*", CLI, T0)
    assert tokens.account(_token(sub="repo:a\0b")) is None
    assert tokens.account(_token(sub="repo:a")) == robot
    with pytest.raises(NotFound):
        accounts.jwt_issuers.unassign(issuer.id, "repo:\0", CLI, T0)
