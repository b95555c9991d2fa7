"""Second factors: time-based one-time codes (RFC 6238) and recovery codes.

Codes are those of every authenticator app: six digits, SHA-1, a new one every 30 seconds.
https://www.rfc-editor.org/rfc/rfc6238
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final
from urllib.parse import quote

STEP_S: Final = 30
DIGITS: Final = 6
WINDOW: Final = 1
"""How many steps a phone's clock may be early or late."""
RECOVERY_CODES: Final = 10
_SECRET_BYTES: Final = 20
_RECOVERY_LETTERS: Final = "23456789abcdefghjkmnpqrstuvwxyz"
_RECOVERY_CHARACTERS: Final = 16  # 79 bits


def new_totp_secret() -> bytes:
    """Return a random secret of 160 bits, to be stored encrypted."""
    return secrets.token_bytes(_SECRET_BYTES)


def totp_address(secret: bytes, account: str, issuer: str) -> str:
    """Return the address in the QR code that authenticator apps read.

    Example:
        >>> totp_address(b"12345678901234567890", "ada", "runvitals")
        'otpauth://totp/runvitals:ada?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=runvitals'
    """
    text = base64.b32encode(secret).decode("ascii").rstrip("=")
    label = f"{quote(issuer, safe='')}:{quote(account, safe='')}"
    return f"otpauth://totp/{label}?secret={text}&issuer={quote(issuer, safe='')}"


def code_at(secret: bytes, step: int) -> str:
    """Return the code of a time step (seconds since 1970 divided by 30)."""
    digest = hmac.new(secret, step.to_bytes(8, "big"), hashlib.sha1).digest()
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 10**DIGITS:0{DIGITS}d}"


def matching_step(secret: bytes, code: str, now_s: float) -> int | None:
    """Return the time step whose code this is; None if it is none of now.

    The caller accepts a step once only, and none before it (`CredentialTable.use_step`): a code that
    somebody saw is worth nothing.
    """
    digits = code.replace(" ", "")
    if len(digits) != DIGITS or not (digits.isascii() and digits.isdigit()):
        return None
    now = int(now_s) // STEP_S
    steps = range(max(0, now - WINDOW), now + WINDOW + 1)
    matching = [step for step in steps if hmac.compare_digest(code_at(secret, step), digits)]
    return max(matching, default=None)


def new_recovery_codes() -> list[str]:
    """Codes that each work once in place of a second factor; shown once, stored as digests."""
    return [_recovery_code() for _ in range(RECOVERY_CODES)]


def recovery_digest(code: str) -> bytes:
    """Return the digest under which a recovery code is stored; case, spaces and dashes do not count."""
    plain = "".join(letter for letter in code.casefold() if letter.isalnum())
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).digest()


def _recovery_code() -> str:
    letters = [secrets.choice(_RECOVERY_LETTERS) for _ in range(_RECOVERY_CHARACTERS)]
    return "-".join("".join(letters[first : first + 4]) for first in range(0, _RECOVERY_CHARACTERS, 4))
