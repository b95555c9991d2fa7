"""People who signed in at a provider: the ID token of OpenID Connect, the calls of GitHub."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from runvitals.model.account_names import address_key
from runvitals.model.names import plain_text
from runvitals.server.sign_on.discovery import Discovery, IssuerMetadata, ProviderFailed
from runvitals.server.sign_on.providers import GITHUB, Provider
from runvitals.server.sign_on.storage.logins import ProviderIdentity
from runvitals.server.sign_on.tokens import Claims, InvalidToken, checked_audience, number, verified_claims

_MAX_SUBJECT: Final = 255
_MAX_TEXT: Final = 200
_MAX_GROUPS: Final = 1000
_PAGE: Final = 100
_MAX_PAGES: Final = 5
"""Of organisations and teams: a user in more of them is in none of the rest here."""
_SEVERAL_FACTORS: Final = (
    "phr",  # of OpenID: resistant to phishing
    "phrh",  # the same, by hardware
    "https://refeds.org/profile/mfa",  # of federations of universities
    "http://schemas.openid.net/pape/policies/2007/06/multi-factor",
)


@dataclass(frozen=True, slots=True)
class Person:
    """A person who signed in.

    Attributes:
        groups: None if the provider says nothing about groups.
        used_second_factor: whether the provider says that it asked for more than one factor.
        signed_in_s: when the person signed in at the provider; None if it does not say.
    """

    identity: ProviderIdentity
    user_name: str
    display_name: str
    groups: tuple[str, ...] | None
    used_second_factor: bool = False
    signed_in_s: float | None = None


def oidc_person(
    provider: Provider,
    discovery: Discovery,
    metadata: IssuerMetadata,
    tokens: Mapping[str, Any],
    nonce: str,
    now_s: float,
) -> Person:
    """Return the person whom the tokens of a provider name.

    Raises:
        InvalidToken: the ID token is not what was asked for.
        ProviderFailed: the provider cannot be asked.
    """
    token = tokens.get("id_token")
    if not isinstance(token, str):
        raise InvalidToken("there is no ID token; is `openid` among the scopes?")
    claims = verified_claims(token, lambda refresh: discovery.keys(provider.issuer, refresh), now_s)
    _check_id_token(claims, provider, nonce)
    group_claim = provider.group_claim
    if "email" not in claims or (group_claim is not None and _claim(claims, group_claim) is None):
        claims = _with_userinfo(claims, discovery, metadata, tokens.get("access_token"))
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject.isprintable() or not 1 <= len(subject) <= _MAX_SUBJECT:
        raise InvalidToken("the subject is missing or too long")
    is_verified = claims.get("email_verified")
    verified = is_verified is True or is_verified == "true"  # some providers write it as a text
    address = _address(claims.get("email")) if verified else None
    user_name = _text(claims.get("preferred_username")) or (address or "").partition("@")[0]
    label = _text(claims.get("email")) or user_name or subject
    identity = ProviderIdentity(provider.id, provider.issuer, subject, label, address)
    return Person(
        identity,
        user_name,
        _text(claims.get("name")),
        _groups(claims, group_claim),
        _used_second_factor(claims),
        number(claims, "auth_time"),
    )


def github_person(provider: Provider, discovery: Discovery, tokens: Mapping[str, Any]) -> Person:
    """Return the person whom a token of GitHub is for.

    Raises:
        ProviderFailed: GitHub cannot be asked, or answers something else.
    """
    token = tokens.get("access_token")
    if not isinstance(token, str):
        raise ProviderFailed("GitHub gave no access token")
    api = "https://api.github.com" if provider.issuer == GITHUB else f"{provider.issuer}/api/v3"
    user = discovery.json(f"{api}/user", token)
    number, name = user.get("id"), _text(user.get("login"))
    if type(number) is not int or not name:
        raise ProviderFailed("the answer of GitHub has no id")
    address = _github_address(discovery.json_value(f"{api}/user/emails", token))
    identity = ProviderIdentity(provider.id, provider.issuer, str(number), name, address)
    groups = _github_groups(api, discovery, token) if provider.follows_groups else None
    return Person(identity, name, _text(user.get("name")), groups)


def _github_groups(api: str, discovery: Discovery, token: str) -> tuple[str, ...]:
    """Return the organisations of a user, `acme`, and their teams, `acme/vision`.

    An organisation that does not allow the application is not among them.
    """
    groups = [
        _text(organisation.get("login"))
        for organisation in _github_list(f"{api}/user/orgs", discovery, token)
    ]
    for team in _github_list(f"{api}/user/teams", discovery, token):
        owner = team.get("organization")
        name = _text(owner.get("login")) if isinstance(owner, dict) else ""
        groups.append(f"{name}/{_text(team.get('slug'))}")
    return tuple(group.lower() for group in groups)


def _github_list(url: str, discovery: Discovery, token: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of all pages of a list."""
    for page in range(1, _MAX_PAGES + 1):
        entries = discovery.json_value(f"{url}?per_page={_PAGE}&page={page}", token)
        if not isinstance(entries, list):
            raise ProviderFailed(f"the answer of {url} is not a list")
        yield from (entry for entry in entries if isinstance(entry, dict))
        if len(entries) < _PAGE:
            return


def _check_id_token(claims: Claims, provider: Provider, nonce: str) -> None:
    if claims.get("iss") != provider.issuer:
        raise InvalidToken("the ID token is of another issuer")
    if not checked_audience(claims, provider.client_id):
        raise InvalidToken("the ID token is for another client")
    party = claims.get("azp")
    several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
    if party != provider.client_id and (several or party is not None):
        raise InvalidToken("the ID token was issued to another client")
    token_nonce = claims.get("nonce")
    if not isinstance(token_nonce, str) or not hmac.compare_digest(token_nonce.encode(), nonce.encode()):
        raise InvalidToken("the ID token is of another sign-in: the nonce differs")


def _with_userinfo(
    claims: Claims, discovery: Discovery, metadata: IssuerMetadata, access_token: object
) -> Claims:
    """Return the claims of the ID token, and those that the provider gives only when asked."""
    if metadata.userinfo_endpoint is None or not isinstance(access_token, str):
        return claims
    userinfo = discovery.json(metadata.userinfo_endpoint, access_token)
    if userinfo.get("sub") != claims.get("sub"):
        raise InvalidToken("the user information is about someone else")
    return {**userinfo, **claims}


def _github_address(addresses: object) -> str | None:
    """Return the primary address that GitHub has verified."""
    for entry in addresses if isinstance(addresses, list) else ():
        if isinstance(entry, dict) and entry.get("verified") is True and entry.get("primary") is True:
            return _address(entry.get("email"))
    return None


def _address(value: object) -> str | None:
    text = _text(value)
    try:
        address_key(text)
    except ValueError:
        return None
    return text


def _text(value: object) -> str:
    return " ".join(plain_text(value).split())[:_MAX_TEXT] if isinstance(value, str) else ""


def _used_second_factor(claims: Claims) -> bool:
    """By `amr` (RFC 8176), or by one of the `acr` that stand for several factors."""
    methods = claims.get("amr")
    return (isinstance(methods, list) and "mfa" in methods) or claims.get("acr") in _SEVERAL_FACTORS


def _groups(claims: Claims, name: str | None) -> tuple[str, ...] | None:
    if name is None:
        return None
    value = _claim(claims, name)
    if isinstance(value, str):  # as some providers write a list of one
        value = [value]
    if value is None:
        elsewhere = claims.get("_claim_names")  # OpenID Connect Core 5.6.2; of Microsoft above 200 groups
        if isinstance(elsewhere, dict) and name in elsewhere:
            raise InvalidToken(f"the provider left out the claim {name}: let it send fewer groups")
        value = []
    if not isinstance(value, list):
        raise InvalidToken(f"the claim {name} is not a list of groups")
    return tuple(group for group in value[:_MAX_GROUPS] if isinstance(group, str))


def _claim(claims: Claims, name: str) -> object:
    """Return a claim; `a.b` is also the `b` of an object `a`, as in Keycloak's `realm_access.roles`."""
    if name in claims:
        return claims[name]
    outer, _, inner = name.partition(".")
    value = claims.get(outer)
    return _claim(value, inner) if inner and isinstance(value, dict) else None
