"""Finds out how a terminal shows images."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Mapping
from typing import Literal

Graphics = Literal["kitty", "sixel", "blocks"]
PLACEHOLDER = "\U0010eeee"
"""A cell that kitty replaces by a part of an image."""
_WAIT_S = 0.15
_KITTY_PROGRAMS = ("ghostty", "kitty")
_ATTRIBUTES = re.compile(rb"\x1b\[\?([\d;]+)c")
_SIXEL = b"4"


def graphics(setting: str, environ: Mapping[str, str]) -> Graphics:
    """Return the way to show images: as configured, or the best that the terminal supports.

    Args:
        setting: `auto`, or one of `Graphics`.
    """
    if setting in ("kitty", "sixel", "blocks"):
        return setting  # type: ignore[return-value]
    if environ.get("NO_COLOR") or environ.get("TMUX") or environ.get("TERM", "").startswith("screen"):
        return "blocks"
    if environ.get("TERM") == "xterm-kitty" or environ.get("TERM_PROGRAM") in _KITTY_PROGRAMS:
        return "kitty"
    return "sixel" if _SIXEL in _attributes() else "blocks"


def _attributes() -> list[bytes]:
    """Return the terminal's response to a request for its attributes; empty if none comes soon."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()) or os.name != "posix":
        return []
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    reply = b""
    try:
        tty.setcbreak(descriptor)
        os.write(sys.stdout.fileno(), b"\x1b[c")
        while not _ATTRIBUTES.search(reply) and select.select([descriptor], [], [], _WAIT_S)[0]:
            reply += os.read(descriptor, 256)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    match = _ATTRIBUTES.search(reply)
    return match[1].split(b";") if match else []


def cell_pixels() -> tuple[int, int]:
    """Return the width and height of a cell in pixels; 8 × 16 where the terminal does not say."""
    try:
        import fcntl
        import struct
        import termios

        size = fcntl.ioctl(sys.stdout.fileno(), termios.TIOCGWINSZ, bytes(8))
    except (OSError, ImportError, ValueError):
        return 8, 16
    rows, columns, width, height = struct.unpack("HHHH", size)
    return (width // columns, height // rows) if rows and columns and width and height else (8, 16)
