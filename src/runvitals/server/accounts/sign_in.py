"""Signing in: by password and second factor, by passkey, and by second factor after a provider.

The response must not show whether an account exists. So every attempt costs one hash, counts towards the same
limits and writes one event, and a wrong name, a wrong password and an account without one are one error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runvitals.model.account_names import address_key, entity_name
from runvitals.server.accounts.attempt_limits import (
    SIGN_IN_ACCOUNT,
    SIGN_IN_NETWORK,
    SUDO,
    FailedAttempts,
    SharedFailedAttempts,
    SignInLimits,
    network_of,
)
from runvitals.server.accounts.known_browsers import KnownBrowser
from runvitals.server.accounts.passkeys import PasskeyRefused, PasskeyResponse, Passkeys, RelyingParty
from runvitals.server.accounts.passwords import Passwords, TooManySignIns
from runvitals.server.accounts.second_factors import FactorKind, FactorProof, SecondFactors
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.organisation.settings import with_defaults
from runvitals.store.errors import NotFound

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.users import UserRow
    from runvitals.server.audit.storage.audit import Actor

CONFIRMING: Final = "confirm"
"""The purpose of the challenge for a passkey that confirms who a signed-in user is."""
_NOBODY: Final = 0
_MAX_TYPED: Final = 254


class SignInRefused(Exception):
    """A sign-in failed; the text is for the user."""


class WrongPassword(SignInRefused):
    """There is no such account, or this is not its password."""


class SecondFactorNeeded(SignInRefused):
    """The password is right; a second factor is missing or wrong. `kinds`: what the user may choose from."""

    def __init__(self, text: str, user_id: int, kinds: tuple[FactorKind, ...]) -> None:
        super().__init__(text)
        self.user_id = user_id
        self.kinds = kinds


class SignInNotAllowed(SignInRefused):
    """Everything is right, but the account is suspended, or passwords are switched off."""


class TooManyAttempts(SignInRefused):
    """There were too many failures. `wait_s`: how long to wait."""

    def __init__(self, wait_s: float) -> None:
        super().__init__("too many failed attempts; try again later")
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to sign in.

    Attributes:
        typed: a user name or an e-mail address.
        proof: of the second factor.
        actor: who tries, for the audit log.
    """

    typed: str
    password: str
    proof: FactorProof
    ip: str
    browser: KnownBrowser | None
    actor: Actor


class SignIn:
    """Checks passwords, codes and passkeys. Thread-safe; blocks while others are hashed.

    Args:
        now_ms: the time in ms UTC.
        monotonic: seconds that only grow.

    Attributes:
        passkeys: makes challenges for passkeys.
        second_factors: says which second factors are asked for.
    """

    def __init__(
        self,
        accounts: AccountStore,
        passwords: Passwords,
        box: SecretBox,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self.passkeys = Passkeys(accounts, box.derived_key("passkey challenges"), now_ms)
        self.second_factors = SecondFactors(accounts, box, self.passkeys, now_ms)
        self._accounts = accounts
        self._passwords = passwords
        self._now_ms = now_ms
        failures, key = accounts.login_failures, box.derived_key("failed sign-ins")
        shared = SharedFailedAttempts(SIGN_IN_ACCOUNT, "sign in", failures, key, now_ms)
        self._limits = SignInLimits(shared, monotonic)
        self._refused_passkeys = FailedAttempts(SIGN_IN_NETWORK, monotonic)
        self._confirmations = SharedFailedAttempts(SUDO, "confirm", failures, key, now_ms)

    def check(self, attempt: Attempt) -> UserRow:
        """Return the user who may sign in: active, or unverified.

        Raises:
            SignInRefused: one of its kinds.
            TooManySignIns: more passwords are being checked than the server allows.
        """
        user = self._find(attempt.typed)
        typed = " ".join(attempt.typed[:_MAX_TYPED].casefold().split())
        browser_id = _id_of(attempt.browser, user)
        wait_s = self._limits.begin(typed, attempt.ip, browser_id)
        if wait_s > 0:
            raise TooManyAttempts(wait_s)
        stored_password = self._accounts.credentials.password(user.id if user else _NOBODY)
        try:
            matches = self._passwords.check(
                attempt.password, stored_password.hash if stored_password else None
            )
        except TooManySignIns:
            self._limits.withdraw(typed, attempt.ip, browser_id)
            raise
        if user is None or stored_password is None or not matches:
            self._record_failure(attempt.actor, user)
            raise WrongPassword("the name or address, or the password, is wrong")
        try:
            self._check_second_factor(user, attempt.proof, attempt.actor)
        except SecondFactorNeeded:
            if attempt.proof.is_empty:
                self._limits.withdraw(typed, attempt.ip, browser_id)
            raise
        try:
            self._check_allowed(user)
        except SignInNotAllowed:
            self._limits.withdraw(typed, attempt.ip, browser_id)
            raise
        self._limits.note_success(typed, attempt.ip, browser_id)
        if self._passwords.needs_rehash(stored_password.hash):
            self._accounts.credentials.rehash(
                user.id, stored_password.hash, self._passwords.hash(attempt.password)
            )
        return user

    def check_passkey(self, party: RelyingParty, credential: PasskeyResponse, actor: Actor) -> UserRow:
        """Return the user who may sign in with a passkey.

        It needs no second factor: the authenticator has recognised the user, by PIN or finger.

        Raises:
            SignInRefused: the passkey proves nothing, or the account may not sign in.
        """
        try:
            user = self._accounts.users.get(self.passkeys.sign_in(party, credential))
        except PasskeyRefused as error:
            self._count_refused(error, actor)
            raise SignInRefused(str(error)) from None
        self._check_allowed(user)
        return user

    def _count_refused(self, error: PasskeyRefused, actor: Actor) -> None:
        """Record a passkey that proves nothing; after many from one network, only count it.

        Right ones from there still work: they cannot be guessed.

        Raises:
            TooManyAttempts: there were many.
        """
        network = network_of(actor.ip or "")
        wait_s = self._refused_passkeys.wait_s(network)
        self._refused_passkeys.note_failure(network)
        if wait_s > 0:
            raise TooManyAttempts(wait_s)
        user = None if error.user_id is None else self._accounts.users.get(error.user_id)
        self._record_failure(actor, user)

    def check_after_provider(
        self, user_id: int, proof: FactorProof, ip: str, browser: KnownBrowser | None, actor: Actor
    ) -> UserRow:
        """Return the user whom a provider has recognised, once the second factor is right.

        Raises:
            SignInRefused: one of its kinds.
        """
        user = self._accounts.users.get(user_id)
        subject, browser_id = f"second factor\n{user_id}", _id_of(browser, user)
        wait_s = self._limits.begin(subject, ip, browser_id)
        if wait_s > 0:
            raise TooManyAttempts(wait_s)
        try:
            self._check_second_factor(user, proof, actor)
        except SecondFactorNeeded:
            if proof.is_empty:
                self._limits.withdraw(subject, ip, browser_id)
            raise
        self._limits.note_success(subject, ip, browser_id)
        if user.state == "suspended":
            raise SignInNotAllowed(_SUSPENDED)
        return user

    def confirm(self, user_id: int, session_id: int, password: str) -> bool:
        """Return whether this is the password of a user who is signed in.

        Raises:
            TooManyAttempts: there were too many wrong ones in this session, which should end.
            TooManySignIns: more passwords are being checked than the server allows.
        """
        subject = str(session_id)
        wait_s = self._confirmations.begin(subject)
        if wait_s > 0:
            raise TooManyAttempts(wait_s)
        stored_password = self._accounts.credentials.password(user_id)
        try:
            matches = self._passwords.check(password, stored_password.hash if stored_password else None)
        except TooManySignIns:
            self._confirmations.withdraw(subject)
            raise
        if matches:
            self._confirmations.note_success(subject)
        else:
            wait_s = self._confirmations.wait_s(subject)
            if wait_s > 0:
                raise TooManyAttempts(wait_s)
        return matches

    def _check_second_factor(self, user: UserRow, proof: FactorProof, actor: Actor) -> None:
        kinds = self.second_factors.kinds(user.id)
        if not kinds:
            return
        problem = self.second_factors.proves(user.id, proof, actor)
        if problem is not None:
            if not proof.is_empty:
                self._record_failure(actor, user)
            raise SecondFactorNeeded(problem, user.id, kinds)

    def _check_allowed(self, user: UserRow) -> None:
        if user.state == "suspended":
            raise SignInNotAllowed(_SUSPENDED)
        # Administrators can always sign in by a link from the command line, also if the provider fails.
        if user.org_role != "admin" and not with_defaults(self._accounts.settings.all())["password_login"]:
            raise SignInNotAllowed(
                "signing in other than by a provider is switched off; use one of the providers"
            )

    def _find(self, typed: str) -> UserRow | None:
        """Return the user of a name; or who verified an address, or else signed up with it last."""
        text = typed.strip()
        try:
            if "@" in text:
                key = address_key(text)
                return self._accounts.users.by_address(key) or self._accounts.users.unverified_by_address(key)
            return self._accounts.users.by_name(entity_name(text))
        except (ValueError, NotFound):
            return None

    def _record_failure(self, actor: Actor, user: UserRow | None) -> None:
        # What was typed may be a password in the wrong field: only names of users are recorded.
        target = None if user is None else user.name
        self._accounts.audit.record(
            self._now_ms(), actor, "user.login_failed", target=target, outcome="denied"
        )


_SUSPENDED: Final = "your account is suspended; ask an administrator"


def _id_of(browser: KnownBrowser | None, user: UserRow | None) -> str | None:
    return browser.id if browser is not None and user is not None and browser.user_id == user.id else None
