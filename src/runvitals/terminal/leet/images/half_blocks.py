"""An image as half blocks: two pixels in each cell of the terminal."""

from __future__ import annotations

from PIL import Image

from runvitals.terminal.leet.braille import Row

_SHADES = " .:-=+*#%@"


def rows_of(image: Image.Image, has_colours: bool) -> list[Row]:
    """Return the rows of an image; without colours, each cell is a character of its brightness."""
    if not has_colours:
        return _characters(image)
    data, width = image.tobytes(), image.width
    lines = [data[start : start + 3 * width].hex() for start in range(0, len(data), 3 * width)]
    rows: list[Row] = []
    for y in range(0, len(lines), 2):
        row: Row = []
        for at in range(0, 6 * width, 6):
            style = f"#{lines[y][at : at + 6]}"
            if y + 1 < len(lines):
                style += f"on#{lines[y + 1][at : at + 6]}"
            if row and row[-1][1] == style:
                row[-1] = (row[-1][0] + "▀", style)
            else:
                row.append(("▀", style))
        rows.append(row)
    return rows


def _characters(image: Image.Image) -> list[Row]:
    grey = image.convert("L").resize((image.width, max(image.height // 2, 1)))
    levels = grey.tobytes()
    texts = (
        "".join(_SHADES[level * len(_SHADES) // 256] for level in levels[start : start + grey.width])
        for start in range(0, len(levels), grey.width)
    )
    return [[(text, "")] for text in texts]
