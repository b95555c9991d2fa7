"""Decides quickly whether a text may hold a secret: `redaction` takes 30 µs a line, and 2 MB of memory.

It may answer yes for a harmless text, but never no for one that `redaction.text` would change.
"""

from __future__ import annotations

# Parts of every name that `secret_names` knows, and words that stand before a secret.
_PARTS = (
    "pass", "secret", "cred", "cookie", "auth", "key", "token", "string", "conn", "hook", "jwt", "pw", "otp",
    "mnemonic", "sess", "phrase", "pat", "sas", "sig", "dsn", "bearer", "basic", "login", "://", "@",
)  # fmt: skip
# Options with a password that follows immediately: `mysql -pSECRET`.
_OPTION = " -"
_LONGEST_PLAIN_WORD = 11
_LEAST_RANDOM = 9  # letters and digits


def may_hold_secret(text: str) -> bool:
    """Return whether a line must be redacted.

    Example:
        >>> may_hold_secret("epoch 3 loss 0.25"), may_hold_secret("HF_TOKEN=abc")
        (False, True)
    """
    lower = text.lower()
    for part in _PARTS:
        if part in lower:
            return True
    if _OPTION in text and _has_letter_option(text):
        return True
    return any(len(word) > _LONGEST_PLAIN_WORD and _is_word(word) for word in text.split())


def _is_word(word: str) -> bool:
    """Return whether something long has many letters or digits, unlike a progress bar."""
    return sum(letter.isascii() and letter.isalnum() for letter in word) >= _LEAST_RANDOM


def _has_letter_option(text: str) -> bool:
    """Return whether a dash is followed by a letter: not a negative number or a dash between words."""
    at = text.find(_OPTION)
    while at >= 0:
        if text[at + 2 : at + 3].isalpha() or text[at + 2 : at + 3] == "-":
            return True
        at = text.find(_OPTION, at + 1)
    return text.startswith("-")
