"""Checks what the terminal supports."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import TextIO

from runvitals.base.terminal_text import shows_unicode
from runvitals.tools.doctor.finding import Check

_SMALLEST = (80, 24)


def findings(stream: TextIO, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield findings about encoding, size and colours, which `runvitals top` and tables use."""
    encoding = getattr(stream, "encoding", None) or "ascii"
    if shows_unicode(stream):
        yield Check("terminal", "characters", "PASS", f"{encoding}: bars and curves can be drawn")
    else:
        text = f"{encoding}: ASCII only, bars are drawn with #"
        yield Check("terminal", "characters", "PARTIAL", text, "set LC_ALL=C.UTF-8 or another UTF-8 locale")
    if not stream.isatty():
        yield Check("terminal", "screen", "ABSENT", "not a terminal: `runvitals top` prints text")
        return
    size = shutil.get_terminal_size()
    kind = environ.get("TERM", "")
    colours = "no colours (NO_COLOR)" if environ.get("NO_COLOR") else "colours"
    text = f"{size.columns} x {size.lines}, {colours}, TERM={kind or 'not set'}"
    if kind in ("", "dumb"):
        yield Check("terminal", "screen", "PARTIAL", text, "set TERM, for example TERM=xterm-256color")
    elif size < _SMALLEST:
        yield Check("terminal", "screen", "PARTIAL", f"{text}: small", "use at least 80 x 24")
    else:
        yield Check("terminal", "screen", "PASS", text)
