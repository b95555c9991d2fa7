from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Literal

import pytest

pytest.importorskip("argon2", reason="argon2-cffi is not installed")

from argon2 import PasswordHasher

from runvitals.server.accounts import passwords
from runvitals.server.accounts.breached_passwords import BreachedPasswords
from runvitals.server.accounts.passwords import Passwords, TooManySignIns, password_problem
from tests.patience import PATIENCE_S

CHEAP = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def test_a_password_is_hashed_and_checked() -> None:
    hasher = Passwords(CHEAP)
    stored = hasher.hash("correct horse battery")
    assert stored.startswith("$argon2id$")
    assert stored != hasher.hash("correct horse battery")
    assert hasher.check("correct horse battery", stored)
    assert not hasher.check("correct horse", stored)
    assert not hasher.check("no account has this password", None)
    assert not hasher.check("anything", "not a hash")
    assert not hasher.check("x" * 1_000_000, stored)


def test_a_machine_without_memory_does_not_make_a_password_wrong() -> None:
    needs_4_tib = CHEAP.hash("correct horse battery").replace("m=8,", "m=4294967295,")
    with pytest.raises(TooManySignIns, match="try again"):
        Passwords(CHEAP).check("correct horse battery", needs_4_tib)


def test_accents_match_however_they_were_typed() -> None:
    hasher = Passwords(CHEAP)
    assert hasher.check("cafe\u0301 au lait", hasher.hash("caf\u00e9 au lait"))


def test_the_parameters_are_those_of_rfc_9106() -> None:
    default = Passwords()
    assert default.needs_rehash(Passwords(CHEAP).hash("correct horse battery"))
    stored = default.hash("correct horse battery")
    assert "m=65536,t=3,p=4" in stored
    assert not default.needs_rehash(stored)


def test_only_so_many_sign_ins_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    release, hashing = threading.Event(), threading.Semaphore(0)

    class Slow(PasswordHasher):
        def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
            hashing.release()
            assert release.wait(PATIENCE_S)
            return True

    slow = Passwords(Slow(time_cost=1, memory_cost=8, parallelism=1))
    most = passwords.MAX_HASHING + passwords.MAX_WAITING
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(slow.check("a", "b"))) for _ in range(most)]
    for thread in threads:
        thread.start()
    for _ in range(passwords.MAX_HASHING):
        assert hashing.acquire(timeout=PATIENCE_S)
    refused = _refused_when_full(slow)
    assert not hashing.acquire(blocking=False)  # no third one
    release.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert refused
    assert results == [True] * most


def _refused_when_full(slow: Passwords) -> bool:
    """Whether the next attempt is refused, once all threads have taken their places."""
    for _ in range(6000):
        if slow._slots._value == 0:  # type: ignore[attr-defined]
            break
        threading.Event().wait(0.01)
    try:
        slow.check("a", "b")
    except TooManySignIns:
        return True
    return False


@pytest.mark.parametrize(
    ("password", "problem"),
    [
        ("short", "too short"),
        ("x" * 129, "too long"),
        ("my name is Lovelace!", "contains your name"),
        ("ada.l@example.org rocks", "contains your name or e-mail"),
        ("I am ada.l, hello", "contains your name or e-mail"),
        ("abababababab", "repeats"),
        ("stolen password 1", "stolen passwords"),
        ("correct horse battery", None),
        ("пароль длиннее двенадцати", None),
        ("🔑🗝️🚪🏠 home sweet", None),
    ],
)
def test_which_passwords_are_accepted(password: str, problem: str | None) -> None:
    found = password_problem(
        password,
        name="Lovelace",
        addresses=("ada.l@example.org",),
        is_breached=lambda text: text.startswith("stolen"),
    )
    assert (found is None) if problem is None else (problem in (found or ""))


def breached(path: Path, words: list[str], characters: int, suffix: str) -> BreachedPasswords:
    sums = sorted(hashlib.sha1(word.encode()).hexdigest().upper()[:characters] for word in words)
    path.write_text("".join(f"{line}{suffix}\n" for line in sums))
    return BreachedPasswords(str(path))


@pytest.mark.parametrize(("characters", "suffix"), [(40, ":17"), (40, ""), (16, "")])
@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_a_list_of_stolen_passwords(tmp_path: Path, characters: int, suffix: str, count: int) -> None:
    words = [f"password{number}" for number in range(count)]
    stolen = breached(tmp_path / "list", words, characters, suffix)
    assert all(word in stolen for word in words)
    assert not any(f"good{number}" in stolen for number in range(200))


def test_counts_of_different_length_and_a_missing_last_newline(tmp_path: Path) -> None:
    sums = sorted(hashlib.sha1(f"p{number}".encode()).hexdigest().upper() for number in range(300))
    path = tmp_path / "list"
    path.write_text("\n".join(f"{line}:{7 ** (index % 9)}" for index, line in enumerate(sums)))
    stolen = BreachedPasswords(str(path))
    assert all(f"p{number}" in stolen for number in range(300))
    assert "p300" not in stolen


def test_a_file_that_is_no_list(tmp_path: Path) -> None:
    path = tmp_path / "list"
    path.write_text("password\nqwerty\n")
    with pytest.raises(ValueError, match="the first line is no hash"):
        BreachedPasswords(str(path))
    with pytest.raises(OSError, match="missing"):
        BreachedPasswords(str(tmp_path / "missing"))
