"""Pictures of users and teams: cut to a square and encoded anew, so that nothing else in the file is kept."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from runvitals.server.user_content.picture_worker import (
    LENGTH,
    MAX_PIXELS,
    SIZE,
    SIZES,
    TOO_MANY_PIXELS,
    UNREADABLE,
    WHOLE,
)

MEDIA_TYPES: Final = frozenset(("image/png", "image/jpeg", "image/webp", "image/gif"))
"""What may be uploaded; what is stored is WebP."""
MAX_BYTES: Final = 5_000_000
MAX_STORED_BYTES: Final = 256 * 1024
MAX_WHOLE_BYTES: Final = 10_000_000
"""Of an image of a report, as it is uploaded and as it is stored."""
_TIME_S: Final = 60.0
"""On a busy machine; the process limits its own CPU time to much less."""
_MAX_AT_A_TIME: Final = 2
_slots = threading.BoundedSemaphore(_MAX_AT_A_TIME)
# The process gets no secrets of the environment, only what Python needs to start.
_ENVIRONMENT: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "LANG")


class UnreadablePicture(ValueError):
    """Not a picture that can be read: damaged, or of another format."""


class PictureTooLarge(ValueError):
    """Too many bytes or pixels."""


class TooManyPictures(Exception):
    """So many pictures are being decoded that this one must be sent again."""


@dataclass(frozen=True, slots=True)
class ScaledPicture:
    """A square picture as WebP, of 512 and of 64 pixels."""

    large: bytes
    small: bytes


@dataclass(frozen=True, slots=True)
class WholePicture:
    """A picture as WebP."""

    body: bytes
    width: int
    height: int


def square_picture(upload: bytes, crop: tuple[int, int, int, int] | None = None) -> ScaledPicture:
    """Return the picture to store for an upload. Blocks for up to a minute, in a process with limits.

    Args:
        crop: x, y, width and height of what is shown, in pixels of the picture as browsers show it. By
            default the largest square around the centre.

    Raises:
        UnreadablePicture: not a picture, or one that exceeds the limits when it is decoded.
        PictureTooLarge: too many bytes or pixels.
        TooManyPictures: try again later.
    """
    if crop is not None and (min(crop) < 0 or max(crop) > MAX_PIXELS or min(crop[2:]) < 1):
        raise UnreadablePicture("invalid crop; expected x,y,width,height in pixels")
    bodies = _decoded(upload, MAX_BYTES, None if crop is None else ",".join(map(str, crop)))
    if len(bodies) != len(SIZES) or max(map(len, bodies)) > MAX_STORED_BYTES:
        raise _beyond_limits()
    return ScaledPicture(*bodies)


def whole_picture(upload: bytes) -> WholePicture:
    """Return an image of a report to store for an upload. Blocks and raises as `square_picture`."""
    bodies = _decoded(upload, MAX_WHOLE_BYTES, WHOLE)
    if len(bodies) != 1 or len(bodies[0]) > MAX_WHOLE_BYTES:
        raise _beyond_limits()
    width, height = SIZE.unpack_from(bodies[0])
    return WholePicture(bodies[0][SIZE.size :], width, height)


def _beyond_limits() -> UnreadablePicture:
    return UnreadablePicture("the picture could not be decoded within the limits of memory and time")


def _decoded(upload: bytes, most_bytes: int, mode: str | None) -> list[bytes]:
    """Return what the worker makes of a picture; nothing if it exceeded a limit."""
    if len(upload) > most_bytes:
        raise PictureTooLarge(f"the picture is too large; expected at most {most_bytes // 1_000_000} MB")
    if not _slots.acquire(blocking=False):
        raise TooManyPictures("too many pictures are being processed; try again in a few seconds")
    try:
        done = _run(upload, mode)
    finally:
        _slots.release()
    if done is not None and done.returncode == UNREADABLE:
        raise UnreadablePicture("not a picture that can be read; expected PNG, JPEG, WebP or GIF")
    if done is not None and done.returncode == TOO_MANY_PIXELS:
        raise PictureTooLarge(
            f"the picture is too large; expected at most {MAX_PIXELS // 1_000_000} megapixels"
        )
    return _bodies(done.stdout) if done is not None and done.returncode == 0 else []


def _run(upload: bytes, mode: str | None) -> subprocess.CompletedProcess[bytes] | None:
    """Return the worker's end; None if it took too long."""
    if find_spec("PIL") is None:
        raise UnreadablePicture("this server reads no pictures; they need pip install 'runvitals[pictures]'")
    command = [sys.executable, "-I", "-m", "runvitals.server.user_content.picture_worker"]
    if mode is not None:
        command.append(mode)
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        return subprocess.run(
            command,
            input=upload,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            timeout=_TIME_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None


def _bodies(output: bytes) -> list[bytes]:
    bodies = []
    while len(output) >= LENGTH.size:
        (length,) = LENGTH.unpack_from(output)
        bodies.append(output[LENGTH.size : LENGTH.size + length])
        output = output[LENGTH.size + length :]
    return bodies
