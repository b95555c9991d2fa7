"""Pictures of users and teams: real files, decoded in the real process."""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from runvitals.server.user_content import pictures
from runvitals.server.user_content.pictures import (
    MAX_BYTES,
    MAX_STORED_BYTES,
    PictureTooLarge,
    TooManyPictures,
    UnreadablePicture,
    square_picture,
)

RED, BLUE = (255, 0, 0), (0, 0, 255)


def _file(picture: Image.Image, kind: str, **options: object) -> bytes:
    body = io.BytesIO()
    picture.save(body, kind, **options)
    return body.getvalue()


def _halves(width: int = 90, height: int = 60) -> Image.Image:
    """Red, and blue in the right third."""
    picture = Image.new("RGB", (width, height), RED)
    ImageDraw.Draw(picture).rectangle((width * 2 // 3, 0, width, height), fill=BLUE)
    return picture


def _near(colour: object, expected: tuple[int, ...]) -> bool:
    return isinstance(colour, tuple) and all(abs(a - b) < 40 for a, b in zip(colour, expected, strict=False))


def _opened(body: bytes) -> Image.Image:
    return Image.open(io.BytesIO(body))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_picture_becomes_two_squares(kind: str) -> None:
    picture = square_picture(_file(_halves(), kind))
    large, small = _opened(picture.large), _opened(picture.small)
    assert (large.format, large.size, small.format, small.size) == ("WEBP", (512, 512), "WEBP", (64, 64))
    # The centre of 90 × 60 is x 15 to 75: blue begins at three quarters.
    assert _near(large.getpixel((300, 256)), RED)
    assert _near(large.getpixel((450, 256)), BLUE)


def test_the_crop_of_the_user() -> None:
    picture = square_picture(_file(_halves(), "PNG"), (60, 0, 30, 30))
    assert _near(_opened(picture.large).getpixel((5, 256)), BLUE)
    outside = square_picture(_file(_halves(), "PNG"), (80, 50, 1000, 1000))
    assert _near(_opened(outside.large).getpixel((256, 256)), BLUE)
    for crop in ((90, 0, 10, 10), (0, 0, 0, 10), (-1, 0, 10, 10), (0, 0, 10, 10**12)):
        with pytest.raises(UnreadablePicture):
            square_picture(_file(_halves(), "PNG"), crop)


def test_metadata_is_applied_and_dropped() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90° clockwise
    exif[0x010E] = "taken at home"
    exif.get_ifd(0x8825)[1] = "N"
    upload = _file(_halves(90, 90), "JPEG", exif=exif, comment=b"secret", quality=95)
    assert b"taken at home" in upload
    picture = square_picture(upload)
    large = _opened(picture.large)
    assert _near(large.getpixel((256, 20)), RED)
    assert _near(large.getpixel((256, 490)), BLUE)
    assert not large.getexif()
    assert b"taken at home" not in picture.large
    assert b"secret" not in picture.large


def test_transparency_and_palettes() -> None:
    assert _opened(square_picture(_file(Image.new("RGBA", (9, 9), (0, 0, 0, 0)), "PNG")).large).mode == "RGBA"
    for mode in ("1", "L", "LA", "P", "I;16"):
        assert len(square_picture(_file(Image.new(mode, (9, 9)), "PNG")).small) > 0
    cmyk = square_picture(_file(Image.new("CMYK", (9, 9)), "JPEG"))
    assert _opened(cmyk.large).mode == "RGB"


def test_the_first_frame_of_an_animation() -> None:
    frames = [Image.new("RGB", (20, 20), colour) for colour in (RED, BLUE)]
    for kind in ("GIF", "WEBP"):
        picture = square_picture(_file(frames[0], kind, save_all=True, append_images=frames[1:]))
        assert _near(_opened(picture.large).getpixel((256, 256)), RED)
        assert getattr(_opened(picture.large), "n_frames", 1) == 1


@pytest.mark.parametrize(
    "upload",
    [
        b"",
        b"hello",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"\x89PNG\r\n\x1a\n",
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        _file(_halves(), "BMP"),
        _file(_halves(), "TIFF"),
        _file(_halves(), "PNG")[:-60],
        _file(_halves(), "JPEG")[:200],
        b"GIF89a" + b"\xff" * 200,
    ],
)
def test_what_is_no_picture_is_refused(upload: bytes) -> None:
    with pytest.raises(UnreadablePicture, match="expected PNG, JPEG, WebP or GIF"):
        square_picture(upload)


def _png(width: int, height: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_picture_bombs_are_refused_before_they_are_decoded() -> None:
    with pytest.raises(PictureTooLarge, match="40 megapixels"):
        square_picture(_png(50_000, 50_000, zlib.compress(b"")))
    with pytest.raises(PictureTooLarge, match="40 megapixels"):
        square_picture(_png(2**31 - 1, 1, zlib.compress(b"")))
    with pytest.raises(PictureTooLarge, match="5 MB"):
        square_picture(b"\x89PNG\r\n\x1a\n" + bytes(MAX_BYTES))


def test_bombs_in_metadata_are_refused() -> None:
    packed = zlib.compress(bytes(200_000_000))

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    whole = _file(_halves(), "PNG")
    bomb = whole[:33] + chunk(b"zTXt", b"k\0\0" + packed) + whole[33:]
    assert len(bomb) < MAX_BYTES
    with pytest.raises(UnreadablePicture):
        square_picture(bomb)


def test_the_largest_picture_is_decoded_within_the_limits() -> None:
    pixels = zlib.compress(bytes((1 + 4 * 6300) * 6300), 1)
    picture = square_picture(_png(6300, 6300, pixels))
    assert _opened(picture.large).size == (512, 512)


def test_noise_fits_into_the_table() -> None:
    noise = Image.frombytes("RGB", (600, 600), os.urandom(600 * 600 * 3))
    picture = square_picture(_file(noise, "PNG"))
    assert len(picture.large) <= MAX_STORED_BYTES


def test_the_process_knows_no_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    spy = tmp_path / "python"
    spy.write_text("#!/bin/sh\nenv > $0.environment\nexit 3\n")
    spy.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(spy))
    monkeypatch.setenv("RUNVITALS_SMTP_URL", "smtps://u:p@mail.example")
    with pytest.raises(UnreadablePicture):
        square_picture(b"")
    environment = (tmp_path / "python.environment").read_text()
    assert "PATH=" in environment
    assert "mail.example" not in environment


def test_few_are_decoded_at_a_time() -> None:
    with pictures._slots, pictures._slots, pytest.raises(TooManyPictures):
        square_picture(_file(_halves(), "PNG"))
