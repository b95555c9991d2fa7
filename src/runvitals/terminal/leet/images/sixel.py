"""Encodes an image as sixels: bands of six rows of pixels, colour by colour.

https://vt100.net/docs/vt3xx-gp/chapter14.html
"""

from __future__ import annotations

from itertools import groupby

from PIL import Image

_COLOURS = 64
_BAND = 6


def sixels(image: Image.Image) -> str:
    """Return the sequence that draws an image at the cursor."""
    reduced = image.quantize(_COLOURS)
    palette = reduced.getpalette() or []
    indexes = reduced.tobytes()
    width, height = reduced.size
    used = sorted(set(indexes))
    parts = [f'\x1bP0;1q"1;1;{width};{height}']
    for index in used:
        red, green, blue = (round(value * 100 / 255) for value in palette[3 * index : 3 * index + 3])
        parts.append(f"#{index};2;{red};{green};{blue}")
    for top in range(0, height, _BAND):
        rows = [indexes[y * width : (y + 1) * width] for y in range(top, min(top + _BAND, height))]
        for index in sorted(set(b"".join(rows))):
            bits = [sum(1 << bit for bit, row in enumerate(rows) if row[x] == index) for x in range(width)]
            parts.append(f"#{index}{_run_lengths(bits)}$")
        parts.append("-")
    return "".join(parts) + "\x1b\\"


def _run_lengths(bits: list[int]) -> str:
    text = []
    for value, run in groupby(bits):
        count, char = len(list(run)), chr(63 + value)
        text.append(f"!{count}{char}" if count > 3 else char * count)
    return "".join(text)
