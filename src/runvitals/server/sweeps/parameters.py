"""The parameters of a sweep: their names, and the distribution of the values of each."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runvitals.server.sweeps.distributions import (
    Beta,
    Categorical,
    Constant,
    Distribution,
    IntUniform,
    Normal,
    Scale,
    Uniform,
)
from runvitals.server.sweeps.problems import Problems, is_number, shorten

MAX_PARAMETERS: Final = 500
MAX_VALUES: Final = 10_000
_MAX_DEPTH: Final = 10
_MAX_NAME: Final = 256
_MIN_SHAPE, _MAX_SHAPE = 1e-6, 1e6
"""Of a beta distribution. Python's `betavariate` never returns for some that are far outside."""
_UNIFORM: Final[Mapping[str, tuple[Scale, bool]]] = {
    "uniform": ("linear", False),
    "log_uniform": ("log", False),
    "log_uniform_values": ("log", True),
    "inv_log_uniform": ("inverse_log", False),
    "inv_log_uniform_values": ("inverse_log", True),
}
"""The scale, and whether `min` and `max` are values, not places on the scale."""
_NORMAL: Final[Mapping[str, Scale]] = {"normal": "linear", "log_normal": "log"}
_LISTED: Final = ("constant", "categorical", "categorical_w_probabilities", "int_uniform")
_QUANTIZED: Final = ("uniform", "log_uniform", "log_uniform_values", "normal", "log_normal", "beta")
DISTRIBUTIONS: Final = (*_LISTED, *_UNIFORM, *_NORMAL, "beta", *(f"q_{name}" for name in _QUANTIZED))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter. `path`: its name, after those of the parameters that it is nested in."""

    path: tuple[str, ...]
    distribution: Distribution

    @property
    def name(self) -> str:
        """The names of the parameter and of those that contain it, with dots."""
        return ".".join(self.path)


def parse_parameters(sent: object, problems: Problems) -> list[Parameter]:
    """The parameters of a configuration; what is wrong with them is added to the problems."""
    if not isinstance(sent, Mapping) or not sent:
        text = "expected an object such as {lr: {min: 0.001, max: 0.1}, layers: {values: [1, 2]}}"
        problems.add("parameters", f"{shorten(sent)}; {text}")
        return []
    parameters: list[Parameter] = []
    _collect(sent, (), parameters, problems)
    if len(parameters) > MAX_PARAMETERS:
        problems.add("parameters", f"{len(parameters):,} parameters; expected at most {MAX_PARAMETERS}")
    return parameters[:MAX_PARAMETERS]


def _collect(
    sent: Mapping[Any, Any], path: tuple[str, ...], parameters: list[Parameter], problems: Problems
) -> None:
    if len(path) > _MAX_DEPTH:
        problems.add("parameters", f"nested too deeply; expected at most {_MAX_DEPTH} levels")
        return
    for name, value in sent.items():
        if len(parameters) > MAX_PARAMETERS:
            return
        if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
            problems.add("parameters", f"invalid name {shorten(name)}; expected a text")
            continue
        here = (*path, name)
        where = "parameters." + ".".join(here)
        if not isinstance(value, Mapping):
            problems.add(where, f"{shorten(value)}; expected an object such as {{value: 1}}")
        elif isinstance(value.get("parameters"), Mapping):
            _collect(value["parameters"], here, parameters, problems)
        else:
            try:
                parameters.append(Parameter(here, _Given(value).distribution()))
            except _Wrong as wrong:
                problems.add(f"{where}{wrong.where}", wrong.what)


class _Wrong(Exception):
    """An error in a parameter, in its field `where`, such as `.min`, or in all of it if empty."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__()
        self.where = where
        self.what = what


class _Given:
    """One parameter as a configuration gives it."""

    def __init__(self, fields: Mapping[Any, Any]) -> None:
        self._fields = fields

    def distribution(self) -> Distribution:
        """Return the distribution, or raise _Wrong with the member at fault."""
        name = self._fields.get("distribution") or self._implied_distribution()
        if name not in DISTRIBUTIONS:
            raise _Wrong(".distribution", f"{shorten(name)}; expected one of {', '.join(DISTRIBUTIONS)}")
        if name == "constant":
            if "value" not in self._fields:
                raise _Wrong(".value", "missing")
            return Constant(self._fields["value"])
        if name == "int_uniform":
            return self._integers()
        if name in _LISTED:
            return self._categorical()
        base = str(name).removeprefix("q_")
        q = None if base == name else self._positive("q", 1)
        if base in _UNIFORM:
            return self._uniform(base, q)
        if base in _NORMAL:
            return Normal(
                float(self._number("mu", 0.0)), float(self._positive("sigma", 1.0)), _NORMAL[base], q
            )
        return Beta(self._shape("a"), self._shape("b"), q)

    def _implied_distribution(self) -> str:
        """The distribution that is meant where none is named."""
        fields = self._fields
        if "value" in fields:
            return "constant"
        if "values" in fields:
            return "categorical"
        if "min" in fields or "max" in fields:
            are_integers = all(_is_integer(fields.get(name)) for name in ("min", "max"))
            return "int_uniform" if are_integers else "uniform"
        if "mu" in fields or "sigma" in fields:
            return "normal"
        raise _Wrong(
            "", "expected value, values, min and max, mu and sigma, or distribution with its numbers"
        )

    def _integers(self) -> IntUniform:
        low, high = self._fields.get("min"), self._fields.get("max")
        if not (_is_integer(low) and _is_integer(high)):
            raise _Wrong("", f"min and max are {shorten(low)} and {shorten(high)}; expected two integers")
        assert isinstance(low, int)
        assert isinstance(high, int)
        _check_order(low, high)
        return IntUniform(low, high)

    def _categorical(self) -> Categorical:
        values = self._fields.get("values")
        if not isinstance(values, (list, tuple)) or not 0 < len(values) <= MAX_VALUES:
            raise _Wrong(".values", f"{shorten(values)}; expected a list of 1 to {MAX_VALUES:,} values")
        weights = self._fields.get("probabilities")
        if weights is None:
            return Categorical(tuple(values))
        are_numbers = isinstance(weights, (list, tuple)) and all(is_number(weight) for weight in weights)
        if not are_numbers or len(weights) != len(values) or min(weights) < 0 or abs(sum(weights) - 1) > 1e-3:
            text = f"{shorten(weights)}; expected {len(values)} numbers from 0 to 1 with the sum 1"
            raise _Wrong(".probabilities", text)
        return Categorical(tuple(values), tuple(map(float, weights)))

    def _uniform(self, base: str, q: float | None) -> Uniform:
        scale, are_values = _UNIFORM[base]
        low, high = self._number("min"), self._number("max")
        _check_order(low, high)
        if not are_values:
            return Uniform(float(low), float(high), scale, q)
        if low <= 0:
            raise _Wrong(".min", f"{shorten(low)}; expected a number above 0, which has a logarithm")
        ends = (math.log(low), math.log(high)) if scale == "log" else (-math.log(high), -math.log(low))
        return Uniform(*ends, scale, q)

    def _number(self, name: str, default: float | None = None) -> float:
        value = self._fields.get(name, default)
        if is_number(value):
            return value
        hint = ", and YAML reads 1e-5 as a text: write 1.0e-5" if isinstance(value, str) else ""
        raise _Wrong(f".{name}", f"{shorten(value)}; expected a number{hint}")

    def _positive(self, name: str, default: float | None = None) -> float:
        value = self._number(name, default)
        if value <= 0:
            raise _Wrong(f".{name}", f"{shorten(value)}; expected a number above 0")
        return value

    def _shape(self, name: str) -> float:
        value = float(self._positive(name))
        if not _MIN_SHAPE <= value <= _MAX_SHAPE:
            text = f"{shorten(value)}; expected a number from {_MIN_SHAPE:g} to {_MAX_SHAPE:g}"
            raise _Wrong(f".{name}", text)
        return value


def _check_order(low: float, high: float) -> None:
    if low > high:
        raise _Wrong("", f"min {shorten(low)} is above max {shorten(high)}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and is_number(value)
