"""Chooses the parameters of the next run of a sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from runvitals.server.sweeps.configuration import SweepConfiguration
from runvitals.server.sweeps.parameters import Parameter

Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """A run of a sweep, as the search sees it.

    Args:
        values: of the parameters, nested as in the configuration.
        cost: what the run achieved, of which less is better; None: it runs, or failed before it logged the
            metric.
        ended: it does not run any more.
    """

    values: Mapping[str, Any]
    cost: float | None = None
    ended: bool = True


def next_parameters(
    configuration: SweepConfiguration, position: int, seed: int, trials: Sequence[Trial] = ()
) -> Values | None:
    """The parameters of the next run; None: all combinations have been tried.

    The same arguments give the same parameters.

    Args:
        position: how many runs this search has chosen parameters for.
        trials: the runs so far, which only a bayes search reads.

    Example:
        >>> found = parse_configuration({"method": "grid", "parameters": {"n": {"values": [1, 2]}}})
        >>> [next_parameters(found, place, seed=0) for place in range(3)]
        [{'n': 1}, {'n': 2}, None]
    """
    if configuration.method == "grid":
        return _combination(configuration, position)
    random = Random(f"{seed}:{position}")
    parameters = configuration.parameters
    if configuration.method == "bayes":
        from runvitals.server.sweeps.bayes import next_values

        tried = [(_flat(parameters, trial.values), trial) for trial in trials]
        complete = [(values, trial.cost, trial.ended) for values, trial in tried if values is not None]
        return nest(parameters, next_values(parameters, complete, random))
    return nest(parameters, [parameter.distribution.sample(random) for parameter in parameters])


def nest(parameters: Sequence[Parameter], values: Sequence[Any]) -> Values:
    """Values of parameters as one object.

    Example:
        >>> nest([Parameter(("net", "width"), Constant(3))], [3])
        {'net': {'width': 3}}
    """
    values_by_name: Values = {}
    for parameter, value in zip(parameters, values, strict=True):
        into = values_by_name
        for name in parameter.path[:-1]:
            into = into.setdefault(name, {})
        into[parameter.path[-1]] = value
    return values_by_name


def _flat(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> list[Any] | None:
    """The values in the order of the parameters; None if one is missing, as in a run that joined later."""
    flat = []
    for parameter in parameters:
        value: Any = values
        for name in parameter.path:
            if not isinstance(value, Mapping) or name not in value:
                return None
            value = value[name]
        flat.append(value)
    return flat


def _combination(configuration: SweepConfiguration, position: int) -> Values | None:
    """The combination of this number, as if all were listed with the last parameter changing fastest."""
    values: list[Any] = []
    for choices in reversed(list(configuration.grids())):
        position, choice = divmod(position, len(choices))
        values.append(choices[choice])
    return None if position else nest(configuration.parameters, values[::-1])
