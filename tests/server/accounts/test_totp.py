from __future__ import annotations

import pytest

from runvitals.server.accounts.totp import (
    RECOVERY_CODES,
    STEP_S,
    code_at,
    matching_step,
    new_recovery_codes,
    new_totp_secret,
    recovery_digest,
)

SECRET = b"12345678901234567890"


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (59, "287082"),
        (1111111109, "081804"),
        (1111111111, "050471"),
        (1234567890, "005924"),
        (2000000000, "279037"),
        (20000000000, "353130"),
    ],
)
def test_the_codes_of_rfc_6238(seconds: int, code: str) -> None:
    """Appendix B, the last six of its eight digits."""
    assert code_at(SECRET, seconds // STEP_S) == code
    assert matching_step(SECRET, code, seconds) == seconds // STEP_S


def test_a_clock_may_be_one_step_off() -> None:
    code = code_at(SECRET, 1000)
    accepted = [
        offset for offset in range(-3, 4) if matching_step(SECRET, code, (1000 + offset) * STEP_S) == 1000
    ]
    assert accepted == [-1, 0, 1]


@pytest.mark.parametrize("code", ["", "12345", "1234567", "28708x", "２８７０８２", "287 083"])
def test_what_is_no_code(code: str) -> None:
    assert matching_step(SECRET, code, 59) is None


def test_a_code_may_be_typed_with_a_space() -> None:
    assert matching_step(SECRET, "287 082", 59) == 1


def test_secrets_and_recovery_codes_are_random() -> None:
    assert new_totp_secret() != new_totp_secret()
    codes = new_recovery_codes()
    assert len(set(codes)) == RECOVERY_CODES
    assert recovery_digest(codes[0].upper().replace("-", " ")) == recovery_digest(codes[0])
    assert recovery_digest(codes[0]) != recovery_digest(codes[1])
