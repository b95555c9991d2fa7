r"""Lines to record of what a process prints."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runvitals.monitoring.monitor.printed_lines import PARTIAL_S, PrintedLines


def test_a_progress_bar_is_recorded_once_it_ends() -> None:
    lines = PrintedLines()
    recorded = [lines.add(f"\r{percent}%".encode(), percent / 100) for percent in range(100)]
    assert "".join(recorded) == ""
    assert lines.add(b"\r100%\nnext\n", 1.0) == "100%\nnext\n"


def test_a_long_progress_bar_is_recorded_now_and_then() -> None:
    lines = PrintedLines()
    recorded = [lines.add(f"\r{second} s".encode(), float(second)) for second in range(31)]
    shown = [text for text in recorded if text]
    assert shown == [f"{second} s\r" for second in (10, 20, 30)]
    assert lines.add(b"", 30 + 2 * PARTIAL_S) == "", "it did not change"


def test_lines_of_windows_and_lines_without_an_end() -> None:
    lines = PrintedLines()
    assert lines.add(b"one\r\ntwo", 0.0) == "one\n"
    assert lines.rest() == "two\n"
    assert lines.rest() == ""


def test_a_character_in_two_pieces() -> None:
    lines = PrintedLines()
    both = "\N{ROCKET}\n".encode()
    assert lines.add(both[:2], 0.0) + lines.add(both[2:], 0.1) == "\N{ROCKET}\n"
    assert lines.add(b"\xff\n", 0.2) == "\N{REPLACEMENT CHARACTER}\n"


def test_secrets() -> None:
    lines = PrintedLines()
    assert lines.add(b"HF_TOKEN=abcdef\nloss 0.5\n", 0.0) == "HF_TOKEN=***\nloss 0.5\n"
    key = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
    assert "MII" not in lines.add(key, 0.1) + lines.add(b"wNtXyzAb\n-----END PRIVATE KEY-----\n", 1.0)
    assert lines.add(b"after\n", 1.1) == "after\n"


@given(st.lists(st.binary(max_size=50), max_size=30))
def test_lines_do_not_depend_on_how_they_arrive(pieces: list[bytes]) -> None:
    apart, whole = PrintedLines(), PrintedLines()
    text = "".join(apart.add(piece, 0.0) for piece in pieces) + apart.rest()
    assert text == whole.add(b"".join(pieces), 0.0) + whole.rest()
