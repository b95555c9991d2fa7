"""Arrays of pixels, and their encoding as PNG, with the standard library only.

Videos become animated PNGs, which all browsers play.
"""

from __future__ import annotations

import sys
import zlib
from colorsys import hls_to_rgb
from struct import pack
from typing import Any, NamedTuple

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Channels → grey, grey with alpha, RGB, RGBA."""
_LEVEL = 3
MAX_PIXELS = 100_000_000
"""Most pixels of an image, or of all frames of a video."""


class Pixels(NamedTuple):
    """One frame: eight bits a channel, row by row."""

    width: int
    height: int
    channels: int
    rows: bytes


def array_of(value: Any) -> Any:
    """Return a NumPy array of a value: an array, or a tensor of PyTorch, TensorFlow or JAX.

    Raises:
        TypeError: it is none of these.
    """
    if callable(getattr(value, "detach", None)):
        value = value.detach().cpu()
        if "bfloat16" in str(value.dtype):
            value = value.float()
    if not hasattr(value, "tobytes") and callable(getattr(value, "numpy", None)):
        value = value.numpy()
    if hasattr(value, "__array__") and not hasattr(value, "clip"):
        value = value.__array__()
    if not all(hasattr(value, name) for name in ("shape", "dtype", "astype", "tobytes", "clip")):
        raise TypeError(f"expected an array, not {type(value).__name__}")
    return value


def channels_last(array: Any, dimensions: int) -> Any:
    """Return the array with channels as its last axis, as PyTorch has them before height and width.

    Args:
        dimensions: number of dimensions with channels: 3 for an image, 4 for a video.

    Raises:
        ValueError: another number of dimensions or channels.
    """
    shape = tuple(array.shape)
    if len(shape) == dimensions - 1 and all(shape):
        return array.reshape((*shape, 1))
    if len(shape) != dimensions or not all(shape):
        raise ValueError(f"an array of the shape {shape}; expected height, width and 1 to 4 channels")
    if shape[-1] in _COLOR_TYPES:
        return array
    if shape[-3] not in _COLOR_TYPES:
        raise ValueError(f"an array of the shape {shape}; expected 1 to 4 channels")
    axes = (*range(dimensions - 3), dimensions - 2, dimensions - 1, dimensions - 3)
    return array.transpose(axes)


def as_bytes(array: Any) -> Any:
    """Return the array as unsigned bytes.

    Floats are scaled by 255 if none is above 1; other numbers are clipped to 0 to 255.
    """
    kind = array.dtype.kind
    if kind == "b":
        return array.astype("uint8") * 255
    if kind in "iu":
        return array.clip(0, 255).astype("uint8")
    if kind != "f":
        raise TypeError(f"an array of {array.dtype}; expected numbers")
    array = sys.modules["numpy"].nan_to_num(array.astype("float32"), nan=0.0)  # it made the array
    scale = 255.0 if float(array.max()) <= 1.0 else 1.0
    return (array * scale).clip(0, 255).round().astype("uint8")


def image_pixels(value: Any) -> Pixels:
    """Return the pixels of an array of height × width (× channels).

    Raises:
        TypeError, ValueError: see `array_of` and `channels_last`; or too many pixels.
    """
    array = channels_last(array_of(value), 3)
    height, width, channels = array.shape
    _check_size(height * width)
    return Pixels(width, height, channels, as_bytes(array).tobytes())


def video_frames(value: Any) -> list[Pixels]:
    """Return the frames of an array of time × height × width (× channels).

    Raises:
        TypeError, ValueError: see `image_pixels`.
    """
    array = channels_last(array_of(value), 4)
    count, height, width, channels = array.shape
    _check_size(count * height * width)
    frames = as_bytes(array)
    return [Pixels(width, height, channels, frames[index].tobytes()) for index in range(count)]


def png(pixels: Pixels) -> bytes:
    """Return an image as PNG."""
    return b"".join((_SIGNATURE, _header(pixels), _chunk(b"IDAT", _compress(pixels)), _chunk(b"IEND", b"")))


def mask_png(array: Any) -> bytes:
    """Return a mask as PNG, in which each number has a color of its own; 0 is almost transparent.

    Args:
        array: of height × width, with integers from 0 to 255.

    Raises:
        ValueError: another shape, or other numbers.
    """
    shape = tuple(size for size in array.shape if size != 1) if len(array.shape) > 2 else tuple(array.shape)
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"a mask of the shape {tuple(array.shape)}; expected height and width")
    if array.min() < 0 or array.max() > 255:
        raise ValueError(f"a mask with numbers from {array.min()} to {array.max()}; expected 0 to 255")
    height, width = shape
    _check_size(height * width)
    rows = array.astype("uint8").tobytes()
    lines = b"".join(b"\0" + rows[first : first + width] for first in range(0, len(rows), width))
    header = _chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
    colors = _chunk(b"PLTE", bytes(part for number in range(256) for part in class_color(number)))
    data = _chunk(b"IDAT", zlib.compress(lines, _LEVEL))
    return b"".join((_SIGNATURE, header, colors, _chunk(b"tRNS", b"\x20"), data, _chunk(b"IEND", b"")))


def class_color(number: int) -> tuple[int, int, int]:
    """Return the color of a class: neighbours differ. The page has the same colors."""
    red, green, blue = hls_to_rgb(number * 0.618034 % 1, 0.5, 0.8)
    return round(red * 255), round(green * 255), round(blue * 255)


def animated_png(frames: list[Pixels], fps: float) -> bytes:
    """Return frames of one size as an animated PNG, which repeats without end."""
    first = frames[0]
    delay = (100, round(100 * min(fps, 600))) if fps >= 1 else (round(1 / max(fps, 1 / 3600)), 1)
    parts = [_SIGNATURE, _header(first), _chunk(b"acTL", pack(">II", len(frames), 0))]
    number = 0
    for index, frame in enumerate(frames):
        control = pack(">IIIIIHHBB", number, frame.width, frame.height, 0, 0, *delay, 0, 0)
        parts.append(_chunk(b"fcTL", control))
        number += 1
        data = _compress(frame)
        if index:
            parts.append(_chunk(b"fdAT", pack(">I", number) + data))
            number += 1
        else:
            parts.append(_chunk(b"IDAT", data))
    return b"".join((*parts, _chunk(b"IEND", b"")))


def png_size(content: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, from its header; None if the content is not a PNG."""
    if not content.startswith(_SIGNATURE) or len(content) < 24:
        return None
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


def _check_size(pixels: int) -> None:
    if pixels > MAX_PIXELS:
        raise ValueError(f"{pixels:,} pixels; at most {MAX_PIXELS:,} are allowed")


def _header(pixels: Pixels) -> bytes:
    return _chunk(
        b"IHDR", pack(">IIBBBBB", pixels.width, pixels.height, 8, _COLOR_TYPES[pixels.channels], 0, 0, 0)
    )


def _compress(pixels: Pixels) -> bytes:
    stride = pixels.width * pixels.channels
    lines = b"".join(
        b"\0" + pixels.rows[first : first + stride] for first in range(0, len(pixels.rows), stride)
    )
    return zlib.compress(lines, _LEVEL)


def _chunk(name: bytes, data: bytes) -> bytes:
    return pack(">I", len(data)) + name + data + pack(">I", zlib.crc32(name + data))
