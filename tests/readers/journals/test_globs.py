"""Globs match as elsewhere, in time proportional to their length."""

from __future__ import annotations

import random
from fnmatch import fnmatchcase

import pytest

from runvitals.readers.journals.globs import MAX_GLOBS, MAX_LENGTH, Glob
from runvitals.readers.journals.key_filter import KeyFilter


def test_globs_match_as_in_fnmatch() -> None:
    chance = random.Random(7)
    matched = 0
    for _ in range(20_000):
        text = "".join(chance.choices("abz.-]\n", k=chance.randrange(7)))
        glob = "".join(chance.choices("abz.-*?[]!^\\", k=chance.randrange(8)))
        expected = fnmatchcase(text, glob)
        matched += expected
        assert Glob(glob)(text) == expected, (glob, text)
    assert matched > 500


@pytest.mark.parametrize(
    "glob",
    [
        "[" * MAX_LENGTH,
        "[!a" * (MAX_LENGTH // 3),
        "[]" * (MAX_LENGTH // 2),
        "*a" * (MAX_LENGTH // 2),
        "?*" * (MAX_LENGTH // 2),
        "*[a-z]" * (MAX_LENGTH // 6),
        "a*" * 20 + "c",
    ],
    ids=lambda glob: glob[:6],
)
def test_no_glob_takes_long(glob: str) -> None:
    matches = Glob(glob)  # with a match that goes back this would not end within the test's patience
    assert {matches("a" * 2000 + "b") for _ in range(50)} <= {True, False}


def test_too_many_or_too_long_globs_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"\[\[\[.*… is too long: 20,000 characters, expected at most 512"):
        KeyFilter(["[" * 20_000])
    with pytest.raises(ValueError, match="too many globs: 101, expected at most 100"):
        KeyFilter(["a*"] * (MAX_GLOBS + 1))
    assert KeyFilter([f"key{number}" for number in range(900)])("key7")
