"""Encodes audio samples as WAV, with the standard library only."""

from __future__ import annotations

from struct import pack
from typing import Any

from runvitals.sdk.media.pixels import array_of

_CHANNELS = 32
_RATES = range(1, 1_000_001)


def wav(value: Any, sample_rate: int) -> bytes:
    """Return samples as WAV with 16 bits.

    Args:
        value: an array of samples (× channels): integers of 16 bits, or floats from -1 to 1.
        sample_rate: samples per second.

    Raises:
        TypeError, ValueError: another value.
    """
    if sample_rate not in _RATES:
        raise ValueError(f"a sample rate of {sample_rate}; expected 1 to {_RATES[-1]} samples per second")
    samples = array_of(value)
    shape = tuple(samples.shape)
    if len(shape) == 2 and shape[0] <= _CHANNELS < shape[1]:  # channels first, as in PyTorch
        samples, shape = samples.T, shape[::-1]
    if len(shape) not in (1, 2) or (len(shape) == 2 and not 1 <= shape[1] <= _CHANNELS):
        raise ValueError(f"an array of the shape {shape}; expected samples, or samples and channels")
    if samples.dtype.kind == "f":
        samples = (samples.astype("float64").clip(-1, 1) * 32767).round()
    elif samples.dtype.kind not in "iu":
        raise TypeError(f"an array of {samples.dtype}; expected numbers")
    data: bytes = samples.clip(-32768, 32767).astype("<i2").tobytes()
    channels = shape[1] if len(shape) == 2 else 1
    form = pack("<HHIIHH", 1, channels, sample_rate, sample_rate * channels * 2, channels * 2, 16)
    head = b"WAVEfmt " + pack("<I", len(form)) + form + b"data" + pack("<I", len(data))
    return b"RIFF" + pack("<I", len(head) + len(data)) + head + data
