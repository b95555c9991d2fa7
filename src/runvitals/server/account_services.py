"""`AccountServices`: passwords, limits and mail for the routes of accounts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from runvitals.server.access.enforcement import rate_limits
from runvitals.server.access.enforcement.rate_limits import RateLimit, RateLimiter
from runvitals.server.accounts.attempt_limits import DEVICE_CODES, ONE_TIME_LINKS, FailedAttempts, network_of
from runvitals.server.accounts.passkeys import RelyingParty, relying_party
from runvitals.server.accounts.passwords import (
    MAX_HASHING,
    MAX_WAITING,
    Passwords,
    TooManySignIns,
    password_problem,
)
from runvitals.server.accounts.sign_in import SignIn
from runvitals.server.accounts.storage.emails import EmailRow
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.http.errors import too_many
from runvitals.server.http.workers import Workers
from runvitals.server.mail import messages
from runvitals.server.mail.mailer import Mailer
from runvitals.server.mail.notices import Notices
from runvitals.server.mail.settings import URL_ENVIRONMENT
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.store.errors import NoLongerValid

if TYPE_CHECKING:
    from fastapi import Request

T = TypeVar("T")
_HASHING_THREADS: Final = MAX_HASHING + MAX_WAITING + 10
"""More than may hash or wait for it, so that further sign-ins are rejected at once."""


@dataclass(frozen=True, slots=True)
class BetaFeature:
    """A feature. `text`: what it does; `since`: the version that has it first; `retiring`: it will go."""

    name: str
    text: str
    since: str
    stage: Literal["beta", "retiring"] = "beta"


BETA_FEATURES: Final[tuple[BetaFeature, ...]] = ()
"""None at present."""


class AccountServices:
    """Passwords, limits and mail.

    Args:
        box: encrypts what must be read again.
        clock: the time now, ms UTC.
        monotonic: seconds that only grow.
        is_breached: whether a password is in a list of stolen ones.

    Attributes:
        sign_in: checks passwords and codes.
        mailer: sends mail.
        device_codes: wrong codes of devices, by session.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        box: SecretBox,
        clock: Callable[[], int],
        mailer: Mailer,
        *,
        passwords: Passwords,
        monotonic: Callable[[], float] = time.monotonic,
        is_breached: Callable[[str], bool] | None = None,
        beta_features: Sequence[BetaFeature] = BETA_FEATURES,
    ) -> None:
        self.accounts = metadata_store.accounts
        self.box = box
        self.clock = clock
        self.mailer = mailer
        self.beta_features = beta_features
        self.passwords = passwords
        self.sign_in = SignIn(self.accounts, self.passwords, box, clock, monotonic)
        self._is_breached = is_breached
        self._workers = Workers(_HASHING_THREADS, goes_on=True)
        self.device_codes = FailedAttempts(DEVICE_CODES, monotonic)
        self._links = FailedAttempts(ONE_TIME_LINKS, monotonic)
        self._rates: dict[str, RateLimiter] = {
            name: RateLimiter(limits, monotonic) for name, limits in _RATES.items()
        }

    def settings(self) -> Mapping[str, Any]:
        """Return the organisation's settings."""
        return with_defaults(self.accounts.settings.all())

    def notices(self) -> Notices:
        """Mail to users, as of now."""
        return Notices(self.accounts, self.mailer, self.clock())

    def relying_party(self, request: Request) -> RelyingParty | None:
        """Return the server as passkeys know it, by the setting `url`; None where browsers allow no passkeys.

        Without that setting, only pages at `localhost` have passkeys.
        """
        settings = self.settings()
        url = os.environ.get(URL_ENVIRONMENT) or settings["url"]
        if not url and request.url.hostname == "localhost":
            url = str(request.base_url)
        return relying_party(url, settings["name"])

    def support_contact(self) -> str:
        """Return whom users ask for help: the setting, or the names of the administrators."""
        contact = self.settings().get("support_contact")
        if contact:
            return str(contact)
        return ", ".join(self.accounts.users.administrators())

    async def hashing(self, work: Callable[[], T]) -> T:
        """Run work that hashes passwords in its own threads; raise 429 if too many are being hashed."""
        try:
            return await self._workers.run(work)
        except TooManySignIns as error:
            raise too_many(str(error), 2) from None

    def password_problem(self, password: str, name: str, addresses: tuple[str, ...]) -> str | None:
        """Why a new password is not accepted; None if it is."""
        return password_problem(password, name=name, addresses=addresses, is_breached=self._is_breached)

    def take(self, limit_name: str, subject: str) -> float:
        """Count one request against a limit; returns how long to wait if it is exceeded, else 0."""
        return self._rates[limit_name].take(subject)

    def limit(self, limit_name: str, subject: str) -> None:
        """Count one request against a limit, or raise 429."""
        wait_s = self.take(limit_name, subject)
        if wait_s > 0:
            raise too_many("too many requests; try again later", wait_s)

    def send_verification(self, user_name: str, email: EmailRow, now_ms: int) -> float:
        """Send the link that confirms an address; if another user has confirmed it, a mail that says so.

        Returns how long to wait if too many were sent to this address, else 0.
        """
        wait_s = self.take("verification", email.address_key)
        if wait_s > 0:
            return wait_s
        owner = self.accounts.users.by_address(email.address_key)
        if owner is None or owner.id == email.user_id:
            token = self.accounts.one_time_tokens.create(
                "verify_email", now_ms, user_id=email.user_id, email_id=email.id
            )
            message = messages.confirm_address(user_name, email.address, token)
        else:
            message = messages.address_already_used(owner.name)
        self.mailer.send(message, email.address, now_ms)
        return 0.0

    def of_link(self, ip: str, read: Callable[[], T]) -> T:
        """Return what a one-time link is for.

        A valid link always works, whatever else comes from its network.

        Raises:
            NoLongerValid: as `read` raises it, which counts as a guess.
            HTTPException: 429 for an invalid link after too many guesses from this network.
        """
        try:
            return read()
        except NoLongerValid:
            network = network_of(ip)
            wait_s = self._links.wait_s(network)
            self._links.note_failure(network)
            if wait_s > 0:
                raise too_many("too many invalid links; try again later", wait_s) from None
            raise


_RATES: Final[dict[str, tuple[RateLimit, ...]]] = {
    "sign_up": (rate_limits.SIGN_UPS,),
    "name": (rate_limits.NAME_CHECKS,),
    "reset_address": (rate_limits.RESETS_OF_ADDRESS,),
    "reset_network": (rate_limits.RESETS_OF_NETWORK,),
    "verification": rate_limits.VERIFICATION_MAILS,
    "device": (rate_limits.DEVICE_LOGINS,),
    "export": (rate_limits.EXPORTS,),
    "team_request": (rate_limits.TEAM_REQUESTS,),
    "provider": (rate_limits.PROVIDER_STARTS,),
    "trial_message": (rate_limits.TRIAL_MESSAGES,),
}
