"""Decodes one picture in a process of its own: `python -I -m … [CROP | whole]`.

Decoders of images have had many faults, and a small file can decode to gigabytes. So this process has limits
on memory and CPU time, writes no file, and knows no secrets. The picture comes on stdin, two WebP files go to
stdout, each after its length: squares of two sizes, or with `whole` one of the whole picture. It exits with
`UNREADABLE` or `TOO_MANY_PIXELS` if the picture is at fault.
"""

from __future__ import annotations

import io
import struct
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from PIL import Image

FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF")
MAX_PIXELS: Final = 40_000_000
SIZES: Final = (512, 64)
MAX_WIDTH: Final = 2560
"""And height, of whole pictures."""
WHOLE: Final = "whole"
LENGTH: Final = struct.Struct(">I")
SIZE: Final = struct.Struct(">HH")
"""Width and height, before a whole picture."""
UNREADABLE: Final = 3
TOO_MANY_PIXELS: Final = 4
_MEMORY_BYTES: Final = 1024 * 1024 * 1024
_CPU_S: Final = 10
_QUALITY: Final = 85

Box = tuple[int, int, int, int]


def main() -> int:
    """Decode the picture on stdin; returns the exit status."""
    _limit()
    from PIL import Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # checked here, with an error of our own
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    crop = _crop(mode) if mode not in ("", WHOLE) else None
    try:
        with Image.open(io.BytesIO(sys.stdin.buffer.read()), formats=FORMATS) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                return TOO_MANY_PIXELS
            opened.load()  # the first frame of an animation
            turned = ImageOps.exif_transpose(opened)
        has_alpha = "A" in turned.getbands() or "transparency" in turned.info
        colors = "RGBA" if has_alpha else "RGB"
        if mode == WHOLE:
            bodies = [_encode_whole(turned.convert(colors))]
        else:
            cropped = turned.crop(_box(turned.size, crop)).convert(colors)
            bodies = [_encode(cropped, size) for size in SIZES]
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, EOFError, MemoryError, struct.error):
        return UNREADABLE
    for body in bodies:
        sys.stdout.buffer.write(LENGTH.pack(len(body)) + body)
    return 0


def _limit() -> None:
    if sys.platform == "win32":
        return  # has no such limits; the time limit of the parent holds there too
    import resource

    for limit, value in (
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_CPU, _CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))


def _crop(text: str) -> Box:
    left, top, width, height = map(int, text.split(","))
    return left, top, left + width, top + height


def _box(size: tuple[int, int], crop: Box | None) -> Box:
    """Return what is shown: the crop within the picture, made square around its centre."""
    left, top, right, bottom = (0, 0, *size) if crop is None else crop
    left, top, right, bottom = max(0, left), max(0, top), min(size[0], right), min(size[1], bottom)
    side = min(right - left, bottom - top)
    if side < 1:
        raise ValueError("nothing of the picture is left")
    left += (right - left - side) // 2
    top += (bottom - top - side) // 2
    return left, top, left + side, top + side


def _encode(picture: Image.Image, size: int) -> bytes:
    from PIL import Image

    resized = picture.resize((size, size), Image.Resampling.LANCZOS, reducing_gap=3.0)
    body = io.BytesIO()
    resized.save(body, "WEBP", quality=_QUALITY, method=4)
    return body.getvalue()


def _encode_whole(picture: Image.Image) -> bytes:
    picture.thumbnail((MAX_WIDTH, MAX_WIDTH), reducing_gap=3.0)
    body = io.BytesIO()
    picture.save(body, "WEBP", quality=_QUALITY, method=4)
    return SIZE.pack(*picture.size) + body.getvalue()


if __name__ == "__main__":
    sys.exit(main())
