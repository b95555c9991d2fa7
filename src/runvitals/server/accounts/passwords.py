"""Passwords: which are accepted, and argon2id hashes of them.

A hash takes 64 MiB and about 0.2 s of CPU, so that guessing is slow. At most two are computed at a time, and
a few may wait: otherwise signing in would be a way to use up a server's memory.
"""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError, VerifyMismatchError
from argon2.low_level import error_to_str
from argon2.profiles import RFC_9106_LOW_MEMORY

MIN_CHARACTERS: Final = 12
MAX_CHARACTERS: Final = 128
MAX_HASHING: Final = 2
MAX_WAITING: Final = 20
_MIN_PART_LENGTH: Final = 4
_TOO_MANY: Final = "too many sign-ins at the same time; try again in a few seconds"
_TOO_LITTLE: Final = frozenset(map(error_to_str, (-22, -33)))
"""Errors of Argon2 without memory or a thread for a hash: they do not mean that the password is wrong."""
_NOBODYS: Final = (  # of a random password that nobody has kept
    "$argon2id$v=19$m=65536,t=3,p=4$ArgS22LJ5tXEQXTpvSUBHA$P3GPWJxsbgSnsQBnt7R03FQEdBlReD8wFgTXsRTa8BE"
)


class TooManySignIns(Exception):
    """More passwords are being checked than the server allows at a time; try again later."""


def password_problem(
    password: str,
    *,
    name: str = "",
    addresses: tuple[str, ...] = (),
    is_breached: Callable[[str], bool] | None = None,
) -> str | None:
    """Why a password is not accepted; None if it is. Any characters are allowed, and none are required.

    Args:
        name, addresses: of the user, which the password must not contain.
        is_breached: whether the password is in a list of known ones.

    Example:
        >>> password_problem("swordfish")
        'the password is too short; expected at least 12 characters'
    """
    text = normalise(password)
    if len(text) < MIN_CHARACTERS:
        return f"the password is too short; expected at least {MIN_CHARACTERS} characters"
    if len(text) > MAX_CHARACTERS:
        return f"the password is too long; expected at most {MAX_CHARACTERS} characters"
    folded = text.casefold()
    parts = [name, *addresses, *(address.partition("@")[0] for address in addresses)]
    if any(len(part) >= _MIN_PART_LENGTH and part.casefold() in folded for part in parts):
        return "the password contains your name or e-mail address"
    if len(set(folded)) < _MIN_PART_LENGTH:
        return "the password repeats the same few characters"
    if is_breached is not None and is_breached(text):
        return "this password is in a list of stolen passwords; choose another one"
    return None


def normalise(password: str) -> str:
    """Return the form in which passwords are compared: keyboards compose accents in several ways."""
    return unicodedata.normalize("NFC", password)


class Passwords:
    """Hashes and checks passwords. Thread-safe; blocks while two others are being hashed."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        self._hasher = hasher or PasswordHasher.from_parameters(RFC_9106_LOW_MEMORY)
        self._slots = threading.BoundedSemaphore(MAX_HASHING + MAX_WAITING)
        self._hashing = threading.BoundedSemaphore(MAX_HASHING)
        self._nobodys = _NOBODYS if hasher is None else hasher.hash("no account has this password")

    def hash(self, password: str) -> str:
        """Return the hash to store, with its salt and parameters, or raise TooManySignIns."""
        with self._turn():
            return str(self._hasher.hash(normalise(password)))

    def check(self, password: str, stored_hash: str | None) -> bool:
        """Return whether a password has this hash. Without a hash (`stored_hash` None), it takes as long.

        Raises:
            TooManySignIns: too many are waiting, or there is no memory for the hash.
        """
        with self._turn():
            try:
                self._hasher.verify(stored_hash or self._nobodys, normalise(password)[: MAX_CHARACTERS + 1])
            except (VerifyMismatchError, InvalidHashError):
                return False
            except VerificationError as error:
                if str(error) in _TOO_LITTLE:
                    raise TooManySignIns(_TOO_MANY) from error
                return False
        return stored_hash is not None

    def needs_rehash(self, stored_hash: str) -> bool:
        """Return whether a hash was made with other parameters than today's."""
        return bool(self._hasher.check_needs_rehash(stored_hash))

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._slots.acquire(blocking=False):
            raise TooManySignIns(_TOO_MANY)
        try:
            with self._hashing:
                yield
        finally:
            self._slots.release()
