"""The start of a sign-in by a provider, and its outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.server.sign_on.storage.logins import LoginRow


@dataclass(frozen=True, slots=True)
class SignOnStart:
    """The URL to send the browser to (302), and the value of `COOKIE` to set."""

    url: str
    cookie: str


@dataclass(frozen=True, slots=True)
class SignedIn:
    """Start a session for this user with method `provider`. `created`: the account is new."""

    user_id: int
    provider: str
    created: bool
    next_path: str


@dataclass(frozen=True, slots=True)
class Linked:
    """The user can sign in with this login from now on."""

    login: LoginRow
    next_path: str


@dataclass(frozen=True, slots=True)
class SecondFactorAsked:
    """The provider has recognised the user, whose second factor must be asked for before a session begins.

    Attributes:
        offer: a login to link first, by `confirm`; None: it is linked already.
    """

    user_id: int
    provider: str
    next_path: str
    offer: str | None


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The signed-in user has signed in again at the provider, for this session."""

    session_id: int
    next_path: str


@dataclass(frozen=True, slots=True)
class LinkNeeded:
    """An account here has the address that the provider has verified.

    Its password must be asked for once; then call `confirm` with the secret, which belongs into the fragment
    of the page's URL.
    """

    secret: str
    provider: str
    next_path: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Nobody is signed in. The page shows a text by the code, and nothing of the provider's answer.

    Attributes:
        code: `state` (begun in another browser, or too long ago), `denied` (cancelled at the provider),
            `provider` (its answer is wrong, or it cannot be reached), `no_account`, `suspended`, `taken`
            (linked to another account), `other` (confirmed by somebody else), or `earlier` (the provider did
            not ask the user to sign in again).
    """

    code: str
    next_path: str = "/"


Outcome = SignedIn | SecondFactorAsked | Linked | Confirmed | LinkNeeded | Refused
