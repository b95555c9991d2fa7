"""The values that a parameter of a sweep can have, and how likely each is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

Scale = Literal["linear", "log", "inverse_log"]
_MAX_EXPONENT = 700.0
_MAX_COUNT = 2.0**53


@dataclass(frozen=True, slots=True)
class Constant:
    """Always the same value."""

    value: Any

    def sample(self, random: Random) -> Any:
        """Return the value."""
        return self.value

    def grid(self) -> Sequence[Any]:
        """Return the value alone."""
        return (self.value,)

    def coordinates(self, value: Any) -> tuple[float, ...]:
        """Return no coordinate: there is nothing to choose."""
        return ()


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of some values. `weights`: how likely each is; None: all the same."""

    values: tuple[Any, ...]
    weights: tuple[float, ...] | None = None

    def sample(self, random: Random) -> Any:
        """Draw a value by the weights."""
        return random.choices(self.values, self.weights)[0]

    def grid(self) -> Sequence[Any]:
        """Return all values."""
        return self.values

    def coordinates(self, value: Any) -> tuple[float, ...]:
        """A 1 for the value: no two values are nearer to each other than others."""
        return tuple(float(_same(other, value)) for other in self.values)


@dataclass(frozen=True, slots=True)
class IntUniform:
    """The integers from `low` to `high`, both included."""

    low: int
    high: int

    def sample(self, random: Random) -> int:
        """Draw an integer."""
        return random.randint(self.low, self.high)

    def grid(self) -> Sequence[int]:
        """Return all integers of the range."""
        return range(self.low, self.high + 1)

    def coordinates(self, value: Any) -> tuple[float, ...]:
        """Return the position in the range, 0 to 1."""
        return (_share(float(value), self.low, self.high),)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Numbers that are evenly spread between two bounds on a scale.

    Args:
        low, high: the bounds on the scale; for `log` they are the logarithms of the least and greatest value,
            for `inverse_log` those of 1 divided by the greatest and the least.
        q: only multiples of this number; None: any.
    """

    low: float
    high: float
    scale: Scale = "linear"
    q: float | None = None

    def sample(self, random: Random) -> float:
        """Draw a number that is uniform on the scale; with `q`, a multiple, if possible in the range."""
        value = _from_scale(random.uniform(self.low, self.high), self.scale)
        if self.q is None:
            return value
        inside = self._multiples(self.q)
        if inside is None or not inside:
            return nearest_multiple(self.q, value)
        return multiple(self.q, max(inside.first, min(inside.last, round(value / self.q))))

    def grid(self) -> Sequence[float] | None:
        """The multiples of `q` between the bounds; None: there are none, or too many to try each."""
        return None if self.q is None else self._multiples(self.q) or None

    def coordinates(self, value: Any) -> tuple[float, ...]:
        """Return the position in the range, 0 to 1, on the scale."""
        return (_share(_to_scale(float(value), self.scale), self.low, self.high),)

    def _multiples(self, q: float) -> _Multiples | None:
        """The multiples between the bounds; None: too many to count."""
        ends = sorted((_from_scale(self.low, self.scale), _from_scale(self.high, self.scale)))
        least, greatest = ends[0] / q, ends[1] / q
        if max(abs(least), abs(greatest)) >= _MAX_COUNT:
            return None
        return _Multiples(q, math.ceil(least - 1e-9), math.floor(greatest + 1e-9))


@dataclass(frozen=True, slots=True)
class Normal:
    """Numbers around `mu` on a scale, two thirds of them within `sigma`."""

    mu: float
    sigma: float
    scale: Scale = "linear"
    q: float | None = None

    def sample(self, random: Random) -> float:
        """Draw a number that is normal on the scale, rounded to a multiple of `q`."""
        value = _from_scale(random.gauss(self.mu, self.sigma), self.scale)
        return value if self.q is None else nearest_multiple(self.q, value)

    def grid(self) -> None:
        """List no values: there are too many."""
        return

    def coordinates(self, value: Any) -> tuple[float, ...]:
        """Return the position between two standard deviations below the mean (0) and above it (1)."""
        on_scale = _to_scale(float(value), self.scale)
        return (_share(on_scale, self.mu - 2 * self.sigma, self.mu + 2 * self.sigma),)


@dataclass(frozen=True, slots=True)
class Beta:
    """Numbers between 0 and 1, near 1 the more often the larger `a`, near 0 the more often the larger `b`."""

    a: float
    b: float
    q: float | None = None

    def sample(self, random: Random) -> float:
        """Draw a number between 0 and 1, rounded to a multiple of `q`."""
        value = random.betavariate(self.a, self.b)
        return value if self.q is None else nearest_multiple(self.q, value)

    def grid(self) -> None:
        """List no values: there are too many."""
        return

    def coordinates(self, value: Any) -> tuple[float, ...]:
        """Return the value, which is between 0 and 1."""
        return (_share(float(value), 0.0, 1.0),)


Distribution = Constant | Categorical | IntUniform | Uniform | Normal | Beta


@dataclass(frozen=True, slots=True)
class _Multiples(Sequence[float]):
    """The multiples of a number from one to another, without keeping them."""

    q: float
    first: int
    last: int

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)

    def __getitem__(self, index: Any) -> Any:
        return multiple(self.q, self.first + index)


def multiple(q: float, count: int) -> float:
    """A multiple of `q`: an integer if `q` is one, else without the error of the multiplication.

    Example:
        >>> multiple(0.1, 3)
        0.3
    """
    return q * count if isinstance(q, int) else float(f"{q * count:.12g}")


def nearest_multiple(q: float, value: float) -> float:
    """The multiple of `q` next to a value; the value itself if it is too large for `q` to matter."""
    count = value / q
    return value if abs(count) >= _MAX_COUNT else multiple(q, round(count))


def _from_scale(exponent: float, scale: Scale) -> float:
    if scale == "linear":
        return exponent
    exponent = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, exponent))
    return math.exp(exponent if scale == "log" else -exponent)


def _to_scale(value: float, scale: Scale) -> float:
    if scale == "linear":
        return value
    # A multiple may be rounded to 0, which no logarithm reaches.
    exponent = math.log(value) if value > 0 else -_MAX_EXPONENT
    return exponent if scale == "log" else -exponent


def _share(value: float, low: float, high: float) -> float:
    """Where a value is between two bounds: 0 to 1, and not far outside."""
    if high <= low:
        return 0.0
    return max(-1.0, min(2.0, (value - low) / (high - low)))


def _same(first: Any, other: Any) -> bool:
    return bool(first == other) and isinstance(first, bool) == isinstance(other, bool)
