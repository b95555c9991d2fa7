"""Kitty's graphics protocol with placeholders: the image is sent once, and text cells show its parts.

The cells scroll and are overwritten like any text.

https://sw.kovidgoyal.net/kitty/graphics-protocol/#unicode-placeholders
"""

from __future__ import annotations

import base64
import io

from PIL import Image

from runvitals.terminal.leet.braille import Row
from runvitals.terminal.leet.images.terminal_graphics import PLACEHOLDER

_CHUNK = 4096
# The first of the combining characters that number rows and columns, as kitty lists them.
_MARKS = (
    "\u0305\u030d\u030e\u0310\u0312\u033d\u033e\u033f\u0346\u034a\u034b\u034c\u0350\u0351\u0352\u0357"
    "\u035b\u0363\u0364\u0365\u0366\u0367\u0368\u0369\u036a\u036b\u036c\u036d\u036e\u036f\u0483\u0484"
    "\u0485\u0486\u0487\u0592\u0593\u0594\u0595\u0597\u0598\u0599\u059c\u059d\u059e\u059f\u05a0\u05a1"
    "\u05a8\u05a9\u05ab\u05ac\u05af\u05c4\u0610\u0611\u0612\u0613\u0614\u0615\u0616\u0617\u0657\u0658"
)
MAX_ROWS = len(_MARKS)


def transmission(image: Image.Image, number: int, columns: int, rows: int) -> str:
    """Return the sequences that send an image, to be shown in cells with placeholders.

    Args:
        number: the image's number, from 1 to 2^24 - 1.
        columns, rows: the numbers of cells.
    """
    out = io.BytesIO()
    image.save(out, "PNG")
    data = base64.standard_b64encode(out.getvalue()).decode()
    chunks = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)]
    parts = []
    for index, chunk in enumerate(chunks):
        first = f"a=T,U=1,f=100,q=2,i={number},c={columns},r={rows}," if index == 0 else ""
        parts.append(f"\x1b_G{first}m={int(index < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(parts)


def placeholders(number: int, columns: int, rows: int) -> list[Row]:
    """Return the cells that show an image. Its number is their colour."""
    style = f"#{number:06x}"
    return [
        [(PLACEHOLDER + _MARKS[row] + _MARKS[0] + PLACEHOLDER * (columns - 1), style)]
        for row in range(min(rows, MAX_ROWS))
    ]
