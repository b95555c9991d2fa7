"""`SingleSignOn`: signing in by a provider, and linking a provider's login to an account."""

from __future__ import annotations

import json
import logging
import re
import secrets
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from runvitals.model.account_names import MAX_DISPLAY_NAME, address_key
from runvitals.model.account_names import display_name as checked_display_name
from runvitals.model.local_path import local_path
from runvitals.server.accounts.storage.users import UserRow
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.outbound.fetcher import Fetcher
from runvitals.server.sign_on.code_flow import CodeFlow
from runvitals.server.sign_on.discovery import Discovery, IssuerMetadata, ProviderFailed
from runvitals.server.sign_on.outcomes import (
    Confirmed,
    Linked,
    LinkNeeded,
    Outcome,
    Refused,
    SecondFactorAsked,
    SignedIn,
    SignOnStart,
)
from runvitals.server.sign_on.people import Person, github_person, oidc_person
from runvitals.server.sign_on.providers import Provider, client_secret, providers_of
from runvitals.server.sign_on.storage.logins import ATTEMPT_MS, AttemptRow
from runvitals.server.sign_on.tokens import LEEWAY_S, InvalidToken
from runvitals.server.teams.storage.invitations import InvitationRow
from runvitals.store.errors import LastAdministrator, NameTaken, NoLongerValid

COOKIE: Final = "rv-oauth"
"""The cookie's name, without the prefix `__Host-` that it has over https. It needs SameSite=Lax."""
COOKIE_S: Final = ATTEMPT_MS // 1000
CALLBACK: Final = "/api/v1/auth/{provider}/callback"
_MAX_PARAMETER: Final = 4096
_MAX_NAMES: Final = 50

log = logging.getLogger("runvitals.accounts")


class UnknownProvider(LookupError):
    """There is no such provider."""


class SingleSignOn:
    """Signs users in by providers. Thread-safe; `start` and `finish` block while they ask the provider.

    Args:
        box: encrypts the secrets of providers, and what a sign-in under way remembers.
        clock: the time now, ms UTC.
        monotonic: seconds that only grow.
        server_url: the address of this server as users know it; never the Host header of a request.
        asks_second_factor: whether a user has a second factor here.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        box: SecretBox,
        fetcher: Fetcher,
        clock: Callable[[], int],
        monotonic: Callable[[], float],
        server_url: Callable[[], str],
        asks_second_factor: Callable[[int], bool],
    ) -> None:
        self._asks_second_factor = asks_second_factor
        self._accounts = metadata_store.accounts
        self._box = box
        self._fetcher = fetcher
        self._clock = clock
        self._server_url = server_url
        self._discovery = Discovery(fetcher, monotonic)

    def providers(self) -> list[Provider]:
        """Return where users may sign in, in the order of the setting, without secrets."""
        return list(providers_of(self._accounts.settings.all()).values())

    def start(
        self,
        provider_id: str,
        *,
        next_path: str = "/",
        link_user_id: int | None = None,
        invitation: str | None = None,
        confirmed_session_id: int | None = None,
    ) -> SignOnStart:
        """Begin a sign-in, or linking a login to the signed-in user `link_user_id`.

        Args:
            next_path: where the page goes afterwards; anything but a path on this server is ignored.
            invitation: the secret of an invitation that brought the browser here.
            confirmed_session_id: the session that the user confirms by signing in again, instead of linking.

        Raises:
            UnknownProvider: there is no such provider.
            ProviderFailed: the provider cannot be reached, or is not what it says.
        """
        provider = self._provider(provider_id)
        state, nonce, verifier, cookie = (secrets.token_urlsafe(48) for _ in range(4))
        try:
            flow, _ = self._flow(provider)
        except (ProviderFailed, ValueError) as error:
            log.warning("sign-in by %s cannot begin: %s", provider.id, error)
            raise
        remembered = {
            "nonce": nonce,
            "verifier": verifier,
            "next": local_path(next_path),
            "invitation": invitation,
            "session": confirmed_session_id,
            "begun_s": self._clock() / 1000,
        }
        sealed = self._box.seal(json.dumps(remembered).encode(), _purpose(state))
        url = flow.address(state, nonce, verifier, again=confirmed_session_id is not None)
        self._accounts.logins.begin(provider.id, link_user_id, sealed, cookie, state, self._clock())
        return SignOnStart(url, cookie)

    def finish(
        self,
        provider_id: str,
        parameters: Mapping[str, str],
        cookie: str | None,
        *,
        signed_in: int | None = None,
        ip: str = "",
        agent: str = "",
    ) -> Outcome:
        """Return what came of a sign-in: call it at the provider's redirect, and remove the cookie.

        Args:
            parameters: of the query.
            cookie: the value of `COOKIE`.
            signed_in: the id of the user of the browser's session.

        Raises:
            UnknownProvider: there is no such provider.
        """
        provider = self._provider(provider_id)
        now_ms = self._clock()
        state = parameters.get("state", "")[:_MAX_PARAMETER]
        try:
            attempt = self._accounts.logins.end(
                state[:_MAX_PARAMETER], (cookie or "")[:_MAX_PARAMETER], now_ms
            )
            remembered = json.loads(self._box.open(attempt.sealed, _purpose(state)))
        except (NoLongerValid, SecretUnreadable):
            return Refused("state")
        next_path = str(remembered["next"])
        if attempt.provider != provider.id or attempt.user_id not in (None, signed_in):
            return Refused("state", next_path)
        try:
            person = self._person(provider, parameters, remembered)
        except (ProviderFailed, InvalidToken) as error:
            log.warning("sign-in by %s failed: %s", provider.id, error)
            denied = parameters.get("error") == "access_denied"
            return Refused("denied" if denied else "provider", next_path)
        by = Actor("anonymous", person.identity.label, via="provider", ip=ip or None, agent=agent or None)
        return self._outcome(provider, person, attempt, remembered, by, now_ms)

    def confirm(self, secret: str, *, ip: str = "", agent: str = "") -> Linked:
        """Link the login of a `LinkNeeded`, once the password of `confirming_user` was checked.

        Raises:
            NoLongerValid: it was used or has expired.
            NameTaken: the login was linked to another account meanwhile.
        """
        now_ms = self._clock()
        user = self._accounts.users.get(self.confirming_user(secret))
        by = Actor("user", user.name, user.id, via="provider", ip=ip or None, agent=agent or None)
        return Linked(self._accounts.logins.accept(secret, by, now_ms), "/")

    def confirming_user(self, secret: str) -> int:
        """Return the id of the user whose password confirms a `LinkNeeded`, or raise NoLongerValid."""
        return self._accounts.logins.offered_user(secret, self._clock())

    def _provider(self, provider_id: str) -> Provider:
        provider = providers_of(self._accounts.settings.all()).get(provider_id)
        if provider is None:
            raise UnknownProvider(f"there is no provider {provider_id[:40]!r}")
        return provider

    def _flow(self, provider: Provider) -> tuple[CodeFlow, IssuerMetadata | None]:
        redirect_uri = self._server_url() + CALLBACK.format(provider=provider.id)
        try:
            secret = client_secret(self._accounts.settings.all(), provider, self._box)
        except SecretUnreadable as error:
            raise ProviderFailed(f"its client secret cannot be read, enter it again: {error}") from None
        provider = replace(provider, client_secret=secret)
        if provider.kind == "github":
            authorization = f"{provider.issuer}/login/oauth/authorize"
            token = f"{provider.issuer}/login/oauth/access_token"
            methods: tuple[str, ...] = ("client_secret_post",)
            return CodeFlow(provider, self._fetcher, redirect_uri, authorization, token, methods), None
        metadata = self._discovery.metadata(provider.issuer)
        flow = CodeFlow(
            provider,
            self._fetcher,
            redirect_uri,
            metadata.authorization_endpoint,
            metadata.token_endpoint,
            metadata.token_auth_methods,
        )
        return flow, metadata

    def _person(
        self, provider: Provider, parameters: Mapping[str, str], remembered: Mapping[str, Any]
    ) -> Person:
        flow, metadata = self._flow(provider)
        issuer = parameters.get("iss")
        names_issuer = metadata is not None and metadata.names_issuer
        if issuer != provider.issuer and (issuer is not None or names_issuer):
            raise InvalidToken("the answer is of another issuer")
        if "error" in parameters:
            raise ProviderFailed(f"the provider answered {parameters['error'][:100]!r}")
        code = parameters.get("code", "")
        if not 1 <= len(code) <= _MAX_PARAMETER:
            raise ProviderFailed("the provider sent no code")
        tokens = flow.tokens(code, remembered["verifier"])
        if metadata is None:
            return github_person(provider, self._discovery, tokens)
        now_s = self._clock() / 1000
        return oidc_person(provider, self._discovery, metadata, tokens, remembered["nonce"], now_s)

    def _outcome(
        self,
        provider: Provider,
        person: Person,
        attempt: AttemptRow,
        remembered: Mapping[str, Any],
        by: Actor,
        now_ms: int,
    ) -> Outcome:
        """Return whose sign-in it is.

        An account is found by the login alone, never by an address that only looks right.
        """
        next_path = str(remembered["next"])
        if attempt.user_id is not None and remembered.get("session") is not None:
            return self._confirm(attempt.user_id, provider, person, remembered, now_ms)
        if attempt.user_id is not None:
            return self._link(attempt.user_id, person, next_path, by, now_ms)
        login = self._accounts.logins.note_use(person.identity, now_ms)
        if login is not None:
            return self._sign_in(login.user_id, provider, person, next_path, by, now_ms, created=False)
        address = person.identity.address
        owner = None if address is None else self._accounts.users.by_address(address_key(address))
        if owner is not None and not provider.trust_email:
            secret = self._accounts.logins.offer(owner.id, person.identity, now_ms)
            return LinkNeeded(secret, provider.id, next_path)
        if owner is not None and owner.state == "suspended":
            return Refused("suspended", next_path)
        if owner is not None and self._second_factor_is_missing(owner.id, provider, person):
            secret = self._accounts.logins.offer(owner.id, person.identity, now_ms)
            return SecondFactorAsked(owner.id, provider.id, next_path, secret)
        offered = None if owner is not None else self._invitation(remembered["invitation"], address, now_ms)
        if owner is None and offered is None and not provider.creates_account_for(address):
            return Refused("no_account", next_path)
        user = owner or self._create(provider, person, by, now_ms)
        if user is None:
            return Refused("no_account", next_path)
        self._accounts.logins.link(user.id, person.identity, by, now_ms)
        if offered is not None and user.access != "none":  # else an administrator must grant access first
            self._accounts.invitations.accept(offered, user.id, by, now_ms)
        return self._sign_in(user.id, provider, person, next_path, by, now_ms, created=owner is None)

    def _second_factor_is_missing(self, user_id: int, provider: Provider, person: Person) -> bool:
        trusted = provider.trust_second_factor and person.used_second_factor
        return not trusted and self._asks_second_factor(user_id)

    def _confirm(
        self,
        user_id: int,
        provider: Provider,
        person: Person,
        remembered: Mapping[str, Any],
        now_ms: int,
    ) -> Outcome:
        """Confirm the user, if they have signed in again as far as the provider can say.

        GitHub cannot.
        """
        next_path = str(remembered["next"])
        login = self._accounts.logins.note_use(person.identity, now_ms)
        if login is None or login.user_id != user_id:
            return Refused("other", next_path)
        at_s = person.signed_in_s
        if provider.kind == "oidc" and (at_s is None or at_s < remembered["begun_s"] - LEEWAY_S):
            return Refused("earlier", next_path)
        return Confirmed(int(remembered["session"]), next_path)

    def _link(self, user_id: int, person: Person, next_path: str, by: Actor, now_ms: int) -> Outcome:
        user = self._accounts.users.get(user_id)
        by = replace(by, kind="user", name=user.name, id=user.id)
        try:
            login = self._accounts.logins.link(user_id, person.identity, by, now_ms)
        except NameTaken:
            return Refused("taken", next_path)
        if person.identity.address is not None:
            self._add_address(user_id, person.identity.address, by, now_ms)
        return Linked(login, next_path)

    def _add_address(self, user_id: int, address: str, by: Actor, now_ms: int) -> None:
        """Add an address that the provider has verified, unless another user has it or there are too many."""
        key = address_key(address)
        try:
            mine = [row for row in self._accounts.emails.of_user(user_id) if row.address_key == key]
            row = mine[0] if mine else self._accounts.emails.add(user_id, address, by, now_ms)
            self._accounts.emails.verify(row.id, by, now_ms)
        except ValueError as error:
            log.info("the address of a linked login was not added: %s", error)

    def _sign_in(
        self,
        user_id: int,
        provider: Provider,
        person: Person,
        next_path: str,
        by: Actor,
        now_ms: int,
        *,
        created: bool,
    ) -> Outcome:
        user = self._accounts.users.get(user_id)
        if user.state == "suspended":
            return Refused("suspended", next_path)
        if person.groups is not None:
            memberships = provider.memberships(person.groups)
            by = replace(by, kind="user", name=user.name, id=user.id)
            for problem in self._accounts.group_memberships.follow(
                user_id, provider.id, memberships, by, now_ms
            ):
                log.warning("a membership does not follow the groups of %s: %s", provider.id, problem)
            if provider.admin_group is not None:
                self._follow_administrators(user, provider, provider.admin_group in person.groups, by, now_ms)
        if self._second_factor_is_missing(user_id, provider, person):
            return SecondFactorAsked(user_id, provider.id, next_path, None)
        return SignedIn(user_id, provider.id, created, next_path)

    def _follow_administrators(
        self, user: UserRow, provider: Provider, is_administrator: bool, by: Actor, now_ms: int
    ) -> None:
        """Make a user an administrator, or one no longer whom this provider's group had made so."""
        users = self._accounts.users
        if is_administrator:
            users.update(user.id, by, now_ms, group_of=provider.id, org_role="admin")
        elif self._accounts.group_memberships.administrator_by(user.id) == provider.id:
            try:
                users.update(user.id, by, now_ms, org_role="member")
            except LastAdministrator as error:
                log.warning("an administrator does not follow the groups of %s: %s", provider.id, error)

    def _invitation(self, secret: str | None, address: str | None, now_ms: int) -> InvitationRow | None:
        """Return the invitation of a link, if it is for this address."""
        if not secret or address is None:
            return None
        try:
            offered = self._accounts.invitations.by_secret(secret, now_ms)
        except NoLongerValid:
            return None
        mine = offered.address is not None and address_key(offered.address) == address_key(address)
        return offered if mine else None

    def _create(self, provider: Provider, person: Person, by: Actor, now_ms: int) -> UserRow | None:
        """Create an account; None if no name is free."""
        access = with_defaults(self._accounts.settings.all())["default_access"]
        for name in _names(person.user_name):
            try:
                user = self._accounts.users.create(
                    name,
                    by,
                    now_ms,
                    display_name=_display_name(person.display_name) or name,
                    address=person.identity.address,
                    verified=person.identity.address is not None,
                    via=provider.kind,
                )
            except ValueError:
                continue  # taken or reserved
            return (
                user if access == "full" else self._accounts.users.update(user.id, by, now_ms, access=access)
            )
        return None


def _names(chosen: str) -> Iterator[str]:
    """User names to try, from the name at the provider."""
    plain = unicodedata.normalize("NFKD", chosen.partition("@")[0]).encode("ascii", "ignore").decode("ascii")
    name = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:50].strip("-") or "user"
    yield name
    for number in range(2, _MAX_NAMES):
        yield f"{name}-{number}"


def _display_name(text: str) -> str:
    try:
        return checked_display_name(text[:MAX_DISPLAY_NAME])
    except ValueError:
        return ""


def _purpose(state: str) -> str:
    return f"sign-in:{state}"
