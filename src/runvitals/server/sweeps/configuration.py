"""The configuration of a sweep, as users of wandb write it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, cast

from runvitals.model.json_values import DAMAGED
from runvitals.server.sweeps.distributions import Categorical
from runvitals.server.sweeps.early_termination import Hyperband, parse_hyperband
from runvitals.server.sweeps.parameters import MAX_PARAMETERS, Parameter, parse_parameters
from runvitals.server.sweeps.problems import Problems, is_number, shorten

Method = Literal["random", "grid", "bayes"]
METHODS: Final = ("random", "grid", "bayes")
GOALS: Final = ("minimize", "maximize")
MAX_RUNS: Final = 1_000_000
_MAX_EXPECTED: Final = 2**53
"""Readers of JSON know no larger integers."""
_MAX_COORDINATES: Final = 1000
"""Of a bayes search: one for each value of a list, else one for each parameter."""
_MAX_NAME: Final = 256
_KEYS: Final = (
    "method",
    "metric",
    "parameters",
    "early_terminate",
    "run_cap",
    "program",
    "command",
    "name",
    "description",
    "project",
    "entity",
    "controller",
    "settings",
)


class InvalidConfiguration(ValueError):
    """A configuration that no sweep can have. The text says what is wrong, where, and what is expected."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("invalid sweep configuration: " + "; ".join(problems))
        self.problems = list(problems)


@dataclass(frozen=True, slots=True)
class Objective:
    """The goal of a sweep: the least or greatest value of a metric in the summaries of runs.

    Args:
        target: the sweep has finished once a run reached it; None: it goes on.
    """

    name: str
    minimizes: bool = True
    target: float | None = None

    def cost(self, value: float) -> float:
        """The value as a number of which less is better."""
        return value if self.minimizes else -value

    def reaches_target(self, value: float) -> bool:
        """Return whether a value is at least as good as the target; False without a target."""
        return self.target is not None and self.cost(value) <= self.cost(self.target)


@dataclass(frozen=True, slots=True)
class SweepConfiguration:
    """A valid configuration.

    Args:
        run_cap: how many runs the sweep has at most; None: no limit.
        program: the script that `wandb agent` starts; None: the agent calls a function.
        warnings: what is in the configuration and has no effect here.
    """

    method: Method
    parameters: tuple[Parameter, ...]
    metric: Objective | None = None
    early_termination: Hyperband | None = None
    run_cap: int | None = None
    program: str | None = None
    name: str | None = None
    description: str | None = None
    warnings: tuple[str, ...] = field(default=())

    @property
    def combinations(self) -> int | None:
        """How many runs a search of the grid has; None: the parameters have too many values to count."""
        if self.method != "grid":
            return None
        return math.prod(len(values) for values in self.grids())

    def grids(self) -> Iterator[Sequence[Any]]:
        """The values of each parameter, for a search of the grid."""
        for parameter in self.parameters:
            values = parameter.distribution.grid()
            assert values is not None  # checked by `parse_configuration`
            yield values

    @property
    def expected_runs(self) -> int | None:
        """How many runs the sweep will have; None: it goes on until somebody stops it, or nearly so."""
        limits = [limit for limit in (self.combinations, self.run_cap) if limit is not None]
        fewest = min(limits, default=None)
        return None if fewest is None or fewest > _MAX_EXPECTED else fewest


def parse_configuration(sent: object) -> SweepConfiguration:
    """Check a configuration.

    Args:
        sent: what was read from YAML or JSON.

    Raises:
        InvalidConfiguration: it is not one.

    Example:
        >>> found = parse_configuration({"method": "grid", "parameters": {"lr": {"values": [0.1, 0.2]}}})
        >>> found.combinations
        2
    """
    if not isinstance(sent, Mapping):
        raise InvalidConfiguration([f"{shorten(sent)}; expected an object with method and parameters"])
    problems = Problems()
    method = sent.get("method")
    if method not in METHODS:
        problems.add("method", f"{shorten(method)}; expected one of {', '.join(METHODS)}")
    metric = _metric(sent.get("metric"), problems)
    if method == "bayes" and sent.get("metric") is None:
        problems.add("metric", "missing; a bayes search needs one, such as {name: loss, goal: minimize}")
    parameters = parse_parameters(sent.get("parameters"), problems)
    early_termination = parse_hyperband(sent.get("early_terminate"), problems)
    if early_termination is not None and sent.get("metric") is None:
        problems.add("metric", "missing; early_terminate needs one, such as {name: loss, goal: minimize}")
    run_cap = sent.get("run_cap")
    if run_cap is not None and not (_is_count(run_cap) and run_cap <= MAX_RUNS):
        problems.add("run_cap", f"{shorten(run_cap)}; expected an integer from 1 to {MAX_RUNS:,}")
    _check_control(sent, problems)
    texts = {name: _text(sent.get(name), name, problems) for name in ("program", "name", "description")}
    if method == "grid":
        for parameter in parameters:
            if parameter.distribution.grid() is None:
                allowed = "value, values, two integers min and max, or the distribution q_uniform"
                problems.add(f"parameters.{parameter.name}", f"a grid search needs {allowed}")
    if method == "bayes" and sum(map(_coordinates, parameters)) > _MAX_COORDINATES:
        text = f"expected at most {_MAX_COORDINATES:,} values in all lists of a bayes search"
        problems.add("parameters", text)
    if problems.texts:
        raise InvalidConfiguration(problems.texts)
    unknown = [str(name) for name in sent if name not in _KEYS]
    return SweepConfiguration(
        method=cast("Method", method),
        parameters=tuple(sorted(parameters, key=lambda parameter: parameter.path)),
        metric=metric,
        early_termination=early_termination,
        run_cap=run_cap,
        warnings=tuple(f"{name[:60]}: has no effect on this server" for name in unknown[:MAX_PARAMETERS]),
        **texts,
    )


def _metric(sent: object, problems: Problems) -> Objective | None:
    if sent is None:
        return None
    if not isinstance(sent, Mapping):
        problems.add("metric", f"{shorten(sent)}; expected an object such as {{name: loss, goal: minimize}}")
        return None
    name, goal, target = sent.get("name"), sent.get("goal", "minimize"), sent.get("target")
    if not isinstance(name, str) or not 0 < len(name) <= _MAX_NAME:
        problems.add("metric.name", f"{shorten(name)}; expected a text of at most {_MAX_NAME} characters")
        return None
    if goal not in GOALS:
        problems.add("metric.goal", f"{shorten(goal)}; expected one of {', '.join(GOALS)}")
    if target is not None and not is_number(target):
        problems.add("metric.target", f"{shorten(target)}; expected a number")
        return None
    return Objective(name, goal != "maximize", None if target is None else float(target))


def _check_control(sent: Mapping[Any, Any], problems: Problems) -> None:
    """A sweep whose parameters something else chooses is refused: the server would choose others."""
    controller = sent.get("controller")
    kind = controller.get("type") if isinstance(controller, Mapping) else controller
    if kind not in (None, "cloud"):
        problems.add("controller.type", f"{shorten(kind)} is not supported; leave it out")
    if sent.get("scheduler") is not None:
        problems.add("scheduler", "not supported: this server chooses the parameters; leave it out")


def _text(value: object, name: str, problems: Problems) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    problems.add(name, f"{shorten(value)}; expected a text")
    return None


def _coordinates(parameter: Parameter) -> int:
    distribution = parameter.distribution
    return len(distribution.values) if isinstance(distribution, Categorical) else 1


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_DAMAGED: Final = SweepConfiguration(cast(Method, DAMAGED), ())


@lru_cache(maxsize=256)
def stored_configuration(encoded: str) -> SweepConfiguration:
    """A configuration from the JSON that is stored: agents ask for it every five seconds."""
    return parse_configuration(json.loads(encoded))


def shown_configuration(encoded: str) -> SweepConfiguration:
    """The same for a list, which one that is damaged must not break: it has the method `damaged`."""
    try:
        return stored_configuration(encoded)
    except ValueError:
        return _DAMAGED
