"""The media type of a file by its first bytes. Names of files are never used: anyone may choose them."""

from __future__ import annotations

import re
from typing import Final

BINARY: Final = "application/octet-stream"
PLAIN_TEXT: Final = "text/plain"
SVG: Final = "image/svg+xml"
HEAD_BYTES: Final = 4096
"""Bytes at the start of a file that `media_type` looks at."""
_SVG: Final = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]", re.DOTALL
)
_SVG_BYTES: Final = 1024
_AUDIO_BRANDS: Final = (b"M4A ", b"M4B ")
_BEGINNINGS: Final = (
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
)
# Of text: what terminals and editors use. The other control characters are signs of binary data.
_NOT_TEXT: Final = bytes(set(range(32)) - {7, 8, 9, 10, 12, 13, 27})


def image_type(head: bytes) -> str | None:
    """Return the media type of an image; None if browsers would not draw it.

    Example:
        >>> image_type(b"GIF89a...")
        'image/gif'
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    if head[4:12] in (b"ftypavif", b"ftypavis"):
        return "image/avif"
    return SVG if _SVG.match(head[:_SVG_BYTES].removeprefix(b"\xef\xbb\xbf")) else None


def media_type(head: bytes) -> str:
    r"""Return the media type of a file that begins with these bytes.

    That of an image, audio or video that browsers play, `text/plain` for any text, otherwise
    `application/octet-stream`.

    Example:
        >>> media_type(b"<html><script>alert(1)</script>"), media_type(b"\x7fELF\x02\x01\x01\0")
        ('text/plain', 'application/octet-stream')
    """
    return image_type(head) or _recording_type(head) or (PLAIN_TEXT if _is_text(head) else BINARY)


def _recording_type(head: bytes) -> str | None:
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        return "audio/wav"
    if head.startswith(b"OggS"):
        return "video/ogg" if b"theora" in head[:128] else "audio/ogg"
    if head.startswith(b"\x1a\x45\xdf\xa3"):
        return "video/webm" if b"webm" in head[:64] else None
    if head[4:8] == b"ftyp":
        return "audio/mp4" if head[8:12] in _AUDIO_BRANDS else "video/mp4"
    return next((kind for beginning, kind in _BEGINNINGS if head.startswith(beginning)), None)


def _is_text(head: bytes) -> bool:
    head = head[:HEAD_BYTES]
    if head.translate(None, _NOT_TEXT) != head:
        return False
    for cut in range(4):  # a character of UTF-8 may end after the bytes that were read
        try:
            (head[: len(head) - cut] if cut else head).decode("utf-8")
        except UnicodeDecodeError:
            continue
        return cut == 0 or len(head) == HEAD_BYTES
    return False
