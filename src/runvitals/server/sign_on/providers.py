"""The setting `providers`: where users may sign in."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from runvitals.model.account_names import domain_key
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable

GITHUB: Final = "https://github.com"
MAX_PROVIDERS: Final = 20
_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_MAX_TEXT: Final = 500
_MAX_GROUPS: Final = 500
_REQUIRED: Final = ("id", "label", "kind", "client_id")
_OPTIONAL: Final = (
    "issuer",
    "client_secret",
    "scopes",
    "trust_email",
    "trust_second_factor",
    "auto_create",
    "group_claim",
    "group_map",
    "admin_group",
)
_FIELDS: Final = frozenset((*_REQUIRED, *_OPTIONAL))


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider at which users may sign in.

    Attributes:
        id: part of the address that the provider sends browsers back to.
        label: what the button says.
        issuer: the issuer's URL; of GitHub the URL of its page.
        client_secret: empty for a public client.
        trust_email: whether an address that the provider has verified is enough to sign in to the account
            that has it here. Otherwise that account's password is asked for once.
        trust_second_factor: whether a user who has a second factor here is not asked for it, if the ID token
            says that the provider asked for one.
        auto_create: whether unknown users get an account: all, none, or those with an address in a domain.
        group_claim: which claim of the ID token has the groups; None: they are ignored. GitHub has none: its
            groups are organisations and their teams, `acme` and `acme/vision`.
        group_map: team and role by group.
        admin_group: the group whose members administer the organisation; None: no group does.
    """

    id: str
    label: str
    kind: Literal["oidc", "github"]
    issuer: str
    client_id: str
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    trust_email: bool = False
    trust_second_factor: bool = False
    auto_create: bool | tuple[str, ...] = False
    group_claim: str | None = None
    group_map: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    admin_group: str | None = None

    @property
    def follows_groups(self) -> bool:
        """Whether memberships here follow groups of the provider."""
        if self.kind == "github":
            return bool(self.group_map) or self.admin_group is not None
        return self.group_claim is not None

    def creates_account_for(self, address: str | None) -> bool:
        """Return whether someone with this verified address, or without one, gets an account."""
        if isinstance(self.auto_create, bool):
            return self.auto_create
        return address is not None and domain_key(address.rpartition("@")[2]) in self.auto_create

    def memberships(self, groups: Iterable[str]) -> dict[str, str]:
        """Return the role by team of someone in these groups; of several in a team, the last in the list."""
        mine = frozenset(groups)
        return {team: role for group, (team, role) in self.group_map.items() if group in mine}


def stored_providers(
    providers: Sequence[Mapping[str, Any]], stored: Sequence[Mapping[str, Any]], box: SecretBox
) -> list[dict[str, Any]]:
    """Check the setting `providers`; returns it as it is stored, with encrypted secrets.

    Args:
        providers: all of them, with `client_secret` where it is new.
        stored: the present value; a provider without a new secret keeps its own, which is sent only to the
            issuer that it was given for.

    Raises:
        ValueError: a provider is invalid; the text says which and what is expected.
    """
    if len(providers) > MAX_PROVIDERS:
        raise ValueError(f"too many providers; expected at most {MAX_PROVIDERS}")
    present = {entry["id"]: entry for entry in stored}
    checked = []
    for entry in providers:
        provider = _provider(entry, str(entry.get("client_secret", "")))
        if provider.client_secret:
            sealed = _seal(box, provider)
        else:
            sealed = _kept_secret(provider, present.get(provider.id, {}))
        values = {name: value for name, value in entry.items() if name != "client_secret"}
        checked.append({**values, "sealed_secret": sealed})
    if len({entry["id"] for entry in checked}) < len(checked):
        raise ValueError("two providers have the same id")
    return checked


def _kept_secret(provider: Provider, present: Mapping[str, Any]) -> str:
    sealed: str = present.get("sealed_secret", "")
    if not sealed:
        return ""
    before = _provider(_without_secret(present), "")
    if (before.kind, before.issuer, before.client_id) != (provider.kind, provider.issuer, provider.client_id):
        raise ValueError(
            f"provider {provider.id}: enter the client secret again: the issuer or the client is another one"
        )
    return sealed


def shown_providers(stored: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the setting as administrators see it: whether there is a secret, never which."""
    return [_without_secret(entry) | {"has_secret": bool(entry.get("sealed_secret"))} for entry in stored]


def providers_of(stored: Mapping[str, Any]) -> dict[str, Provider]:
    """Return the providers of the organisation's settings by id, without their secrets."""
    return {entry["id"]: _provider(_without_secret(entry), "") for entry in stored.get("providers", ())}


def client_secret(stored: Mapping[str, Any], provider: Provider, box: SecretBox) -> str:
    """Return the secret of a provider; empty: it has none.

    Raises:
        SecretUnreadable: the key file is another one.
    """
    sealed = (entry.get("sealed_secret", "") for entry in stored["providers"] if entry["id"] == provider.id)
    return _open(box, provider.id, next(sealed, ""))


def _without_secret(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "sealed_secret"}


def _provider(entry: Mapping[str, Any], secret: str) -> Provider:
    name = str(entry.get("id", ""))
    if not _ID.fullmatch(name):
        raise ValueError(f"invalid id of a provider {name[:40]!r}; expected letters a to z, digits and -")
    unknown = entry.keys() - _FIELDS
    if unknown:
        fields = ", ".join(sorted(_FIELDS))
        raise ValueError(f"provider {name}: unknown field {min(unknown)!r}; expected one of {fields}")
    kind = entry.get("kind")
    if kind not in ("oidc", "github"):
        raise ValueError(f"provider {name}: invalid kind {kind!r}; expected oidc or github")
    issuer = _text(name, "issuer", entry.get("issuer", GITHUB if kind == "github" else ""))
    if not issuer.startswith("https://"):
        raise ValueError(f"provider {name}: invalid issuer; expected https://…")
    claim = _text(name, "group_claim", entry["group_claim"]) if entry.get("group_claim") else None
    admin_group = _text(name, "admin_group", entry["admin_group"]) if entry.get("admin_group") else None
    if kind == "oidc" and admin_group is not None and claim is None:
        raise ValueError(f"provider {name}: admin_group needs group_claim, which names the groups of a user")
    group_map = _group_map(name, entry.get("group_map", {}))
    if kind == "github":  # its names have no case
        group_map = {group.lower(): target for group, target in group_map.items()}
        admin_group = None if admin_group is None else admin_group.lower()
    has_groups = bool(group_map) or admin_group is not None
    return Provider(
        name,
        _text(name, "label", entry.get("label")),
        kind,
        issuer.rstrip("/") if kind == "github" else issuer,
        _text(name, "client_id", entry.get("client_id")),
        secret[:_MAX_TEXT],
        _scopes(name, kind, entry.get("scopes"), has_groups),
        _switch(name, "trust_email", entry.get("trust_email", False)),
        _switch(name, "trust_second_factor", entry.get("trust_second_factor", False)),
        _auto_create(name, entry.get("auto_create", False)),
        claim,
        group_map,
        admin_group,
    )


def _text(provider: str, what: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= _MAX_TEXT or not value.isprintable():
        raise ValueError(
            f"provider {provider}: invalid {what}; expected a text of 1 to {_MAX_TEXT} characters"
        )
    return value.strip()


def _switch(provider: str, what: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"provider {provider}: invalid {what}; expected true or false")
    return value


def _scopes(provider: str, kind: str, value: object, has_groups: bool) -> tuple[str, ...]:
    if value is None and kind == "github":
        return ("read:user", "user:email", *(["read:org"] if has_groups else []))
    if value is None:
        return ("openid", "email", "profile")
    if not isinstance(value, list) or not value or len(value) > 20:
        raise ValueError(f"provider {provider}: invalid scopes; expected a list of texts")
    scopes = tuple(_text(provider, "scope", scope) for scope in value)
    if kind == "oidc" and "openid" not in scopes:
        raise ValueError(f"provider {provider}: invalid scopes; expected openid among them")
    return scopes


def _auto_create(provider: str, value: object) -> bool | tuple[str, ...]:
    if isinstance(value, bool):
        return value
    if not isinstance(value, list) or not all(isinstance(domain, str) for domain in value):
        raise ValueError(
            f"provider {provider}: invalid auto_create; expected true, false or a list of domains"
        )
    return tuple(domain_key(domain) for domain in value)


def _group_map(provider: str, value: object) -> dict[str, tuple[str, str]]:
    problem = f"provider {provider}: invalid group_map; expected {{group: {{team, role}}}}"
    if not isinstance(value, dict) or len(value) > _MAX_GROUPS:
        raise ValueError(problem)
    roles = {}
    for group, target in value.items():
        if not isinstance(target, dict) or target.keys() != {"team", "role"}:
            raise ValueError(problem)
        team, role = target["team"], target["role"]
        roles[str(group)] = _text(provider, "team", team), _text(provider, "role", role)
    return roles


def _purpose(provider: str) -> str:
    return f"provider:{provider}"


def _seal(box: SecretBox, provider: Provider) -> str:
    sealed = box.seal(provider.client_secret.encode(), _purpose(provider.id))
    return base64.b64encode(sealed).decode("ascii")


def _open(box: SecretBox, provider: str, sealed: str) -> str:
    if not sealed:
        return ""
    try:
        return box.open(base64.b64decode(sealed, validate=True), _purpose(provider)).decode()
    except ValueError:
        raise SecretUnreadable(f"the secret of provider {provider} is damaged") from None
