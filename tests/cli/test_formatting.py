"""Text for a terminal."""

from __future__ import annotations

import pytest

from runvitals.base.terminal_text import cut, harmless
from runvitals.cli.formatting import ending, inert, iso, moment, number, table
from runvitals.model.durations import duration_text
from runvitals.model.ending import Ending


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, café, 学習", "plain text, café, 学習"),
        ("\x1b]0;title\x07\x1b[2J", r"\x1b]0;title\x07\x1b[2J"),
        ("two\nlines\tand a tab", r"two\nlines\tand a tab"),
        ("\u202eright to left", r"\u202eright to left"),
        ("\x9b31m", r"\x9b31m"),
        ("\ud800", r"\ud800"),
        ("a\u3164b\u115fc\u034fd\ufe0fe\U000e0101f", r"a\u3164b\u115fc\u034fd\ufe0fe\U000e0101f"),
        ("cafe\u0301", "cafe\u0301"),
        ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + r"\u0301\u0301"),
        ("\u0301a", r"\u0301a"),
        ("กี่ נִּ", "กี่ נִּ"),
    ],
)
def test_inert(text: str, shown: str) -> None:
    assert inert(text) == shown


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0.0 s"),
        (4_210, "4.2 s"),
        (59_999, "60.0 s"),
        (60_000, "1 min"),
        (83_000, "1 min 23 s"),
        (3_600_000, "1 h"),
        (93_784_000, "1 d 2 h 3 min"),
    ],
)
def test_duration(ms: int, text: str) -> None:
    assert duration_text(ms) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0.0, "0"),
        (0.123456, "0.1235"),
        (98.76543, "98.77"),
        (1234567.0, "1,234,567"),
        (1.5e20, "1.5e+20"),
        (float("inf"), "inf"),
    ],
)
def test_number(value: float | None, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (Ending("finished", exit_code=0), "finished"),
        (Ending("failed", exit_code=3), "failed (exit code 3)"),
        (Ending("crashed", signal=9, out_of_memory=True), "crashed (SIGKILL, out of memory)"),
        (Ending("crashed", signal=200), "crashed (signal 200)"),
        (Ending("lost"), "lost"),
    ],
)
def test_ending(how: Ending, text: str) -> None:
    assert ending(how) == text


def test_times_outside_the_calendar_are_shown_as_numbers() -> None:
    assert moment(1_760_000_000_000) == "2025-10-09 08:53:20"
    assert iso(1_760_000_000_007) == "2025-10-09T08:53:20.007Z"
    assert (moment(2**62), iso(2**62)) == (f"{2**62} ms", "")


def test_table() -> None:
    assert (
        table([["KEY", "N"], ["cpu", "5"], ["x", "10"]], right=frozenset({1})) == "KEY   N\ncpu   5\nx    10"
    )


def test_table_with_wide_characters_and_marks() -> None:
    assert table([["学習", "1"], ["cafe\u0301", "22"]], right=frozenset({1})) == ("学習   1\ncafe\u0301  22")


def test_layout_of_harmless_text_is_kept() -> None:
    assert harmless("a\tb\n\u0301c\x1b\r\nd") == "a\tb\n\\u0301c\\x1b\r\nd"


@pytest.mark.parametrize(("text", "shown"), [("abc", "abc"), ("abcde", "abc…"), ("学習学", "学…"), ("", "")])
def test_cut(text: str, shown: str) -> None:
    assert cut(text, 4) == shown
