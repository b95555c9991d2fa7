"""Second factors: a code of an authenticator app, a recovery code, or a passkey after the password."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from runvitals.server.accounts.passkeys import PasskeyRefused, PasskeyResponse, Passkeys, RelyingParty
from runvitals.server.accounts.totp import matching_step, recovery_digest
from runvitals.server.database.secret_box import SecretBox

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor

PURPOSE: Final = "second factor"
"""The purpose of the challenge for a passkey as second factor."""
FactorKind = Literal["code", "passkey"]


@dataclass(frozen=True, slots=True)
class FactorProof:
    """A code or a passkey that proves the second factor.

    Attributes:
        code: of the app, or a recovery code.
        passkey: the response of a passkey. It counts for this server alone: `party`.
    """

    code: str | None = None
    passkey: PasskeyResponse | None = None
    party: RelyingParty | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the user has given neither code nor passkey."""
        return self.code is None and self.passkey is None


class SecondFactors:
    """Says which second factors are asked for, and checks them. Thread-safe.

    Args:
        now_ms: the time in ms UTC.
    """

    def __init__(
        self, accounts: AccountStore, box: SecretBox, passkeys: Passkeys, now_ms: Callable[[], int]
    ) -> None:
        self._accounts = accounts
        self._box = box
        self._passkeys = passkeys
        self._now_ms = now_ms

    def kinds(self, user_id: int) -> tuple[FactorKind, ...]:
        """Return the second factors that a user may choose from; none: the user is asked for none.

        Where only passkeys are asked for, a recovery code counts too: `code`.
        """
        factor = self._accounts.credentials.second_factor(user_id)
        has_app = factor is not None and factor.confirmed_ms is not None
        needs_passkey = self._accounts.passkeys.asked_after_password(user_id)
        if not has_app and not needs_passkey:
            return ()
        has_passkey = bool(self._accounts.passkeys.of_user(user_id))
        return ("code", "passkey") if has_passkey else ("code",)

    def are_asked(self, user_id: int) -> bool:
        """Return whether a user is asked for a second factor."""
        return bool(self.kinds(user_id))

    def proves(self, user_id: int, proof: FactorProof, actor: Actor) -> str | None:
        """Check what a user shows; returns None if it is right, else why not."""
        if proof.passkey is not None:
            return self._passkey_problem(user_id, proof)
        if proof.code is None:
            return "enter the code that your authenticator app shows, or a recovery code"
        factor = self._accounts.credentials.second_factor(user_id)
        if factor is not None and factor.confirmed_ms is not None:
            step = self.step_of(user_id, proof.code)
            if step is not None and self._accounts.credentials.use_step(user_id, step):
                return None
        digest = recovery_digest(proof.code)
        if self._accounts.credentials.use_recovery_code(user_id, digest, actor, self._now_ms()):
            return None
        return "this code is wrong, or was used already"

    def step_of(self, user_id: int, code: str) -> int | None:
        """Return the time step of a code for the user's app, confirmed or not; None for a wrong code."""
        factor = self._accounts.credentials.second_factor(user_id)
        if factor is None:
            return None
        secret = self._box.open(factor.sealed_secret, totp_purpose(user_id))
        return matching_step(secret, code, self._now_ms() / 1000)

    def _passkey_problem(self, user_id: int, proof: FactorProof) -> str | None:
        if proof.party is None or proof.passkey is None:
            return "passkeys cannot be used at this address of the server"
        try:
            self._passkeys.confirm(proof.party, user_id, PURPOSE, proof.passkey, verified=False)
        except PasskeyRefused as error:
            return str(error)
        return None


def totp_purpose(user_id: int) -> str:
    """Return the purpose for which the secret of a user's app is encrypted."""
    return f"totp:{user_id}"
