"""Converts objects of other packages to JSON.

A NumPy or PyTorch scalar becomes a number, a short array a list, a long one a histogram, anything else a
string.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

LISTED = 32
"""Arrays up to this size are recorded as a list."""
SAMPLED = 10_000
"""Number of elements, evenly spaced, that a histogram reads from a larger array."""
EXACT = 1 << 24
"""Up to this size, minimum and maximum are taken over all elements."""
BINS = 64
HISTOGRAM = "histogram"
"""Its `_type`, as W&B has it."""
_PLAIN = (str, int, float, list, type(None))


def as_plain(value: object) -> object:
    """Return an object as a number, string, list or mapping.

    Example:
        >>> as_plain(numpy.float32(0.5)), as_plain(numpy.arange(3))
        (0.5, [0, 1, 2])
        >>> as_plain(numpy.zeros(1000))["count"]
        1000
    """
    if is_masked(value):
        return None
    if not hasattr(value, "tolist") and callable(getattr(value, "numpy", None)):
        value = value.numpy()  # type: ignore[attr-defined]  # TensorFlow
    shape = _shape(value)
    if _product(shape) > LISTED and callable(getattr(value, "tolist", None)):
        return histogram(value, shape, _product(shape))
    for method in ("item", "tolist"):
        convert = getattr(value, method, None)
        if callable(convert):
            try:
                converted: object = convert()
            except (ValueError, TypeError, RuntimeError):
                continue  # `.item()` of an array with several elements: try `.tolist()`
            if isinstance(converted, _PLAIN):
                return converted
            if type(converted) is not type(value):
                return str(converted)  # e.g. NumPy's datetime64 and complex, now Python's
    if hasattr(type(value), "__float__"):  # Decimal, Fraction, long doubles of NumPy
        try:
            return float(value)  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError):
            return str(value)
    return str(value)


def is_masked(value: object) -> bool:
    """Return whether it is NumPy's constant for a masked value, which converts to zero."""
    return type(value).__name__ == "MaskedConstant"


def histogram(array: Any, shape: tuple[int, ...], size: int) -> object:
    """Return an array's histogram in W&B's format with min, max and mean; a text without numbers.

    Reads at most `SAMPLED` elements, so it takes a few milliseconds for any size.
    """
    numbers = [
        float(number) for number in _flat(_grid(array, shape).tolist()) if isinstance(number, (int, float))
    ]
    if not numbers:
        return f"({type(array).__name__} of {size} elements)"
    finite = [number for number in numbers if isfinite(number)]
    summary: dict[str, object] = {"_type": HISTOGRAM, "count": size}
    if len(numbers) < size:
        summary["sampled"] = len(numbers)
    if len(finite) < len(numbers):
        summary["not_finite"] = len(numbers) - len(finite)
    if finite:
        low, high = _extremes(array, finite, size)
        summary.update(min=low, max=high, mean=sum(finite) / len(finite))
        summary["values"], summary["bins"] = counts(finite)
    return summary


def is_histogram(plain: object) -> bool:
    """Return whether a value was returned by `histogram`."""
    return type(plain) is dict and plain.get("_type") == HISTOGRAM and isinstance(plain.get("count"), int)


def _shape(value: object) -> tuple[int, ...]:
    shape = getattr(value, "shape", None)
    try:
        return tuple(int(length) for length in shape)  # type: ignore[union-attr]
    except TypeError:
        return ()


def _product(lengths: Any) -> int:
    product = 1
    for length in lengths:
        product *= length
    return product


def _grid(array: Any, shape: tuple[int, ...]) -> Any:
    """Return a view of at most `SAMPLED` elements: every second, fourth … along the longest axes."""
    steps, lengths = [1] * len(shape), list(shape)
    while _product(lengths) > SAMPLED:
        longest = lengths.index(max(lengths))
        steps[longest] *= 2
        lengths[longest] = (lengths[longest] + 1) // 2
    if max(steps) == 1:
        return array
    slices = tuple(slice(None, None, step) for step in steps)
    return array[slices if len(slices) > 1 else slices[0]]


def _flat(nested: object) -> Iterator[object]:
    if isinstance(nested, list):
        for inner in nested:
            yield from _flat(inner)
    else:
        yield nested


def _extremes(array: Any, finite: list[float], size: int) -> tuple[float, float]:
    """Return minimum and maximum: of all elements if that is fast and they are finite, else sampled."""
    if SAMPLED < size <= EXACT:
        low, high = float(array.min()), float(array.max())
        if isfinite(low) and isfinite(high):
            return low, high
    return min(finite), max(finite)


def counts(finite: list[float], bins: int = BINS) -> tuple[list[int], list[float]]:
    """Return the count of each bin, and the bin edges. A single bin if all numbers are the same."""
    low, high = min(finite), max(finite)
    width = high / bins - low / bins
    if not width:
        return [len(finite)], [low, high]
    per_bin = [0] * bins
    scale = 1.0 if isfinite(high - low) else 0.5
    for number in finite:
        per_bin[min(bins - 1, int((number * scale - low * scale) / (width * scale)))] += 1
    return per_bin, [low + width * edge for edge in range(bins)] + [high]
