"""Colour schemes of lines and heatmaps. Background and text have the terminal's own colours.

Textual reduces the colours to what the terminal has: 16, 256 or all, or none with NO_COLOR.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from rich.style import Style

# Colours of lines, in an order of contrast. The first three (Okabe and Ito; Paul Tol's bright and vibrant
# schemes) are readable with colour-blindness.
_LINES: Mapping[str, tuple[str, ...]] = {
    "okabe-ito": (
        "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#d55e00", "#5f9ee9", "#b0b0b0",
    ),
    "tol-bright": (
        "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#dd8452",
    ),
    "tol-vibrant": (
        "#0077bb", "#ee7733", "#009988", "#cc3311", "#33bbee", "#ee3377", "#bbbbbb", "#ddaa33",
    ),
    "ansi": ("cyan", "yellow", "green", "magenta", "blue", "red", "bright_cyan", "white"),
    "mono": ("#e0e0e0", "#b8b8b8", "#909090", "#d0d0d0", "#a8a8a8", "#808080", "#c0c0c0", "#989898"),
}  # fmt: skip
# Colours of heatmaps, cold to hot; all but the last two get lighter with the value, so that they are readable
# with colour-blindness.
_HEAT: Mapping[str, tuple[str, ...]] = {
    "viridis": (
        "#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b",
        "#fde725",
    ),
    "cividis": (
        "#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55",
        "#fee838",
    ),
    "inferno": (
        "#1b0c41", "#4a0c6b", "#781c6d", "#a52c60", "#cf4446", "#ed6925", "#fb9b06", "#f7c93c", "#f7e35a",
        "#fcffa4",
    ),
    "grey": tuple(f"#{grey:02x}{grey:02x}{grey:02x}" for grey in range(45, 255, 21)),
    "traffic-light": (
        "#1a9850", "#3fae55", "#66bd63", "#a6d96a", "#d9ef8b", "#fee08b", "#fdae61", "#f46d43", "#e34a33",
        "#d73027",
    ),
}  # fmt: skip
LINE_SCHEMES, HEAT_SCHEMES = tuple(_LINES), tuple(_HEAT)
_HEAT_NAME = re.compile(r"heat(\d+)(?:on(\d+))?")


class Palette:
    """The styles of all rows, by name.

    Args:
        lines: the scheme of lines.
        heat: the scheme of heatmaps.

    Example:
        >>> Palette("okabe-ito", "viridis")["heat9"].color.name
        '#fde725'
    """

    def __init__(self, lines: str = "okabe-ito", heat: str = "viridis") -> None:
        self.has_colours = not os.environ.get("NO_COLOR")
        self._heat = _HEAT[heat]
        colours = _LINES[lines]
        self._styles = {
            "": Style(),
            "dim": Style(color="#8a8a8a"),
            "frame": Style(color="#5a5a5a"),
            "focus": Style(bold=True),
            "guide": Style(color="#444444"),
            "cross": Style(color="#d0d0d0"),
            "title": Style(bold=True),
            "value": Style(color=colours[0]),
            "good": Style(color=colours[2], bold=True),
            "warn": Style(color=colours[1]),
            "bad": Style(color=colours[5], bold=True),
            "cursor": Style(reverse=True),
            **{f"line{index}": Style(color=colour) for index, colour in enumerate(colours)},
        }

    def __getitem__(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self._other(name)
            if not name.startswith("#"):  # the colours of images are too many to keep
                self._styles[name] = style
        return style

    def _other(self, name: str) -> Style:
        """Return the style of a level of a heatmap, of two above each other (`heat3on7`), or of a colour."""
        heat = _HEAT_NAME.fullmatch(name)
        if heat is None:
            text, _, background = name.partition("on")
            return Style(color=text, bgcolor=background or None)
        behind = None if heat[2] is None else self._heat[int(heat[2])]
        return Style(color=self._heat[int(heat[1])], bgcolor=behind)
