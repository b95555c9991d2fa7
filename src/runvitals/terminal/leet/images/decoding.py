"""Decodes images that runs logged. They are untrusted: only a few formats and sizes are accepted."""

from __future__ import annotations

import io

from PIL import Image, UnidentifiedImageError

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP")
MAX_PIXELS = 64_000_000


class UnreadableImage(ValueError):
    """The image is not shown; the message says why."""


def decode(content: bytes, width: int, height: int) -> Image.Image:
    """Return the first frame of an image in RGB, scaled to fit into a number of pixels, over black.

    Raises:
        UnreadableImage: another format, too large, or damaged.
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise UnreadableImage(f"{opened.width} × {opened.height} pixels are too many")
            opened.draft("RGB", (width, height))
            image = opened.convert("RGBA")
    except UnidentifiedImageError:
        raise UnreadableImage(f"not one of {', '.join(FORMATS)}") from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise UnreadableImage(f"damaged: {error}") from None
    scale = min(width / image.width, height / image.height)
    size = max(round(image.width * scale), 1), max(round(image.height * scale), 1)
    how = Image.Resampling.BOX if scale < 1 else Image.Resampling.NEAREST
    scaled = image.resize(size, how)
    behind = Image.new("RGBA", size, (0, 0, 0, 255))
    return Image.alpha_composite(behind, scaled).convert("RGB")
