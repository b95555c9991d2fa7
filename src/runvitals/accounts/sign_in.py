"""Signing in: by password, and by a code where the account has a second factor.

The answer must not show whether an account exists. So every attempt costs one hash, counts towards the same
limits and writes one event, and a wrong name, a wrong password and an account without one are one error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runvitals.accounts.attempt_limits import SUDO, FailedAttempts, SignInLimits
from runvitals.accounts.known_browsers import KnownBrowser
from runvitals.accounts.organisation_settings import with_defaults
from runvitals.accounts.passwords import Passwords, TooManySignIns
from runvitals.accounts.secret_box import SecretBox
from runvitals.accounts.totp import matching_step, recovery_digest
from runvitals.model.account_names import address_key, entity_name
from runvitals.store.errors import UnknownAccount

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor
    from runvitals.store.metadata.accounts.users import UserRow

_NOBODY: Final = 0
_MAX_TYPED: Final = 254


class SignInRefused(Exception):
    """A sign-in failed; the text is for the user."""


class WrongPassword(SignInRefused):
    """There is no such account, or this is not its password."""


class SecondFactorNeeded(SignInRefused):
    """The password is right; a code is missing or wrong."""


class NotAllowed(SignInRefused):
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
        code: of the second factor, or a recovery code.
        actor: who tries, for the audit log.
    """

    typed: str
    password: str
    code: str | None
    ip: str
    browser: KnownBrowser | None
    actor: Actor


class SignIn:
    """Checks passwords and codes. Thread-safe; blocks while others are hashed.

    Args:
        now_ms: the time in ms UTC.
        monotonic: seconds that only grow.
    """

    def __init__(
        self,
        accounts: AccountStore,
        passwords: Passwords,
        box: SecretBox,
        now_ms: Callable[[], int],
        monotonic: Callable[[], float],
    ) -> None:
        self._accounts = accounts
        self._passwords = passwords
        self._box = box
        self._now_ms = now_ms
        self._limits = SignInLimits(monotonic)
        self._confirmations = FailedAttempts(SUDO, monotonic)

    def check(self, attempt: Attempt) -> UserRow:
        """The user who may sign in: active, or unverified.

        Raises:
            SignInRefused: one of its kinds.
            TooManySignIns: more passwords are being checked than the server allows.
        """
        user = self._find(attempt.typed)
        typed = " ".join(attempt.typed[:_MAX_TYPED].casefold().split())
        known = _id_of(attempt.browser, user)
        wait_s = self._limits.wait_s(typed, attempt.ip, known)
        if wait_s > 0:
            raise TooManyAttempts(wait_s)
        self._limits.failed(typed, attempt.ip, known)
        stored = self._accounts.credentials.password(user.id if user else _NOBODY)
        try:
            matches = self._passwords.check(attempt.password, stored.hash if stored else None)
        except TooManySignIns:
            self._limits.withdraw(typed, attempt.ip, known)
            raise
        if user is None or stored is None or not matches:
            self._record_failure(attempt, user)
            raise WrongPassword("the name or address, or the password, is wrong")
        try:
            self._check_second_factor(user.id, attempt.code, attempt.actor)
        except SecondFactorNeeded:
            if attempt.code is None:
                self._limits.withdraw(typed, attempt.ip, known)
            else:
                self._record_failure(attempt, user)
            raise
        self._limits.withdraw(typed, attempt.ip, known)
        self._check_allowed(user)
        self._limits.succeeded(typed, known)
        if self._passwords.needs_rehash(stored.hash):
            self._accounts.credentials.rehash(user.id, stored.hash, self._passwords.hash(attempt.password))
        return user

    def confirm(self, user_id: int, session_id: int, password: str) -> bool:
        """Whether this is the password of a user who is signed in.

        Raises:
            TooManyAttempts: there were too many wrong ones in this session, which should end.
            TooManySignIns: more passwords are being checked than the server allows.
        """
        wait_s = self._confirmations.wait_s(session_id)
        if wait_s > 0:
            raise TooManyAttempts(wait_s)
        self._confirmations.failed(session_id)
        stored = self._accounts.credentials.password(user_id)
        try:
            matches = self._passwords.check(password, stored.hash if stored else None)
        except TooManySignIns:
            self._confirmations.withdraw(session_id)
            raise
        if matches:
            self._confirmations.succeeded(session_id)
        elif self._confirmations.wait_s(session_id) > 0:
            raise TooManyAttempts(self._confirmations.wait_s(session_id))
        return matches

    def step_of(self, user_id: int, code: str) -> int | None:
        """The time step of a code for the user's second factor, confirmed or not; None for a wrong code."""
        factor = self._accounts.credentials.second_factor(user_id)
        if factor is None:
            return None
        secret = self._box.open(factor.sealed_secret, totp_purpose(user_id))
        return matching_step(secret, code, self._now_ms() / 1000)

    def _check_second_factor(self, user_id: int, code: str | None, actor: Actor) -> None:
        factor = self._accounts.credentials.second_factor(user_id)
        if factor is None or factor.confirmed_ms is None:
            return
        if code is None:
            raise SecondFactorNeeded("enter the code that your authenticator app shows, or a recovery code")
        step = self.step_of(user_id, code)
        if step is not None and self._accounts.credentials.use_step(user_id, step):
            return
        digest = recovery_digest(code)
        if not self._accounts.credentials.use_recovery_code(user_id, digest, actor, self._now_ms()):
            raise SecondFactorNeeded("this code is wrong, or was used already")

    def _check_allowed(self, user: UserRow) -> None:
        if user.state == "suspended":
            raise NotAllowed("your account is suspended; ask an administrator")
        # Administrators can always sign in by a link from the command line, also if the provider fails.
        if user.org_role != "admin" and not with_defaults(self._accounts.settings.all())["password_login"]:
            raise NotAllowed("signing in by password is switched off; use one of the providers")

    def _find(self, typed: str) -> UserRow | None:
        """The user of a name; or who verified an address, or else signed up with it last."""
        text = typed.strip()
        try:
            if "@" in text:
                key = address_key(text)
                return self._accounts.users.by_address(key) or self._accounts.users.unverified_by_address(key)
            return self._accounts.users.by_name(entity_name(text))
        except (ValueError, UnknownAccount):
            return None

    def _record_failure(self, attempt: Attempt, user: UserRow | None) -> None:
        # What was typed may be a password in the wrong field: only names of users are recorded.
        target = None if user is None else user.name
        self._accounts.audit.record(
            self._now_ms(), attempt.actor, "user.login_failed", target=target, outcome="denied"
        )


def totp_purpose(user_id: int) -> str:
    """The purpose for which the secret of a user's second factor is encrypted."""
    return f"totp:{user_id}"


def _id_of(browser: KnownBrowser | None, user: UserRow | None) -> str | None:
    return browser.id if browser is not None and user is not None and browser.user_id == user.id else None
