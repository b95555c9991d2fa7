"""Which parameters a sweep tries next."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from runvitals.server.sweeps.configuration import (
    InvalidConfiguration,
    SweepConfiguration,
    parse_configuration,
)
from runvitals.server.sweeps.distributions import Categorical, nearest_multiple
from runvitals.server.sweeps.early_termination import Hyperband
from runvitals.server.sweeps.gaussian_process import GaussianProcess
from runvitals.server.sweeps.parameters import DISTRIBUTIONS
from runvitals.server.sweeps.search import Trial, next_parameters

METRIC = {"name": "loss"}


def sweep(method: str, parameters: dict[str, Any], **more: Any) -> SweepConfiguration:
    return parse_configuration({"method": method, "metric": METRIC, "parameters": parameters, **more})


def drawn(parameter: dict[str, Any], count: int = 200) -> list[Any]:
    """Values that a random search chooses for a parameter."""
    search = sweep("random", {"x": parameter})
    return [next_parameters(search, index, 1)["x"] for index in range(count)]


def test_a_grid_has_each_combination_once_the_last_parameter_changing_fastest() -> None:
    search = sweep(
        "grid",
        {"b": {"values": ["x", "y"]}, "a": {"min": 1, "max": 2}, "net": {"parameters": {"n": {"value": 3}}}},
    )
    tried = [next_parameters(search, index, 0) for index in range(5)]
    net = {"net": {"n": 3}}
    assert tried == [
        {"a": 1, "b": "x", **net},
        {"a": 1, "b": "y", **net},
        {"a": 2, "b": "x", **net},
        {"a": 2, "b": "y", **net},
        None,
    ]
    assert search.combinations == search.expected_runs == 4


def test_a_huge_grid_is_counted_and_searched_without_being_listed() -> None:
    search = sweep("grid", {name: {"min": 1, "max": 10**9} for name in "abc"}, run_cap=7)
    assert (search.combinations, search.expected_runs) == (10**27, 7)
    assert next_parameters(search, 10**27 - 1, 0) == {"a": 10**9, "b": 10**9, "c": 10**9}


def test_more_combinations_than_integers_of_json_are_as_many_as_without_an_end() -> None:
    search = sweep("grid", {f"x{number}": {"min": 0, "max": 2**52} for number in range(500)})
    assert search.expected_runs is None


def test_the_same_seed_and_place_give_the_same_parameters() -> None:
    search = sweep("random", {"x": {"min": 0.0, "max": 1.0}})
    assert next_parameters(search, 3, seed=9) == next_parameters(search, 3, seed=9)
    assert next_parameters(search, 3, seed=9) != next_parameters(search, 4, seed=9)
    assert next_parameters(search, 3, seed=9) != next_parameters(search, 3, seed=8)


@pytest.mark.parametrize(
    ("parameter", "low", "high", "median"),
    [
        ({"min": 1, "max": 9}, 1, 9, 5),
        ({"min": -1.0, "max": 3.0}, -1, 3, 1),
        ({"min": 0, "max": 1.5}, 0, 1.5, 0.75),
        ({"distribution": "log_uniform", "min": -4, "max": 2}, math.exp(-4), math.exp(2), math.exp(-1)),
        ({"distribution": "log_uniform_values", "min": 0.01, "max": 100}, 0.01, 100, 1),
        ({"distribution": "inv_log_uniform", "min": -2, "max": 4}, math.exp(-4), math.exp(2), math.exp(-1)),
        ({"distribution": "inv_log_uniform_values", "min": 0.01, "max": 100}, 0.01, 100, 1),
        ({"distribution": "q_uniform", "min": 0, "max": 1, "q": 0.1}, 0, 1, 0.5),
        ({"distribution": "q_log_uniform", "min": 0, "max": 6}, 1, 403, math.exp(3)),
        ({"distribution": "q_log_uniform_values", "min": 30, "max": 270, "q": 8}, 32, 264, 90),
        ({"mu": 5, "sigma": 0.1}, 4.5, 5.5, 5),
        ({"distribution": "log_normal", "mu": 0, "sigma": 0.1}, 0.6, 1.6, 1),
        ({"distribution": "q_normal", "mu": 50, "sigma": 10, "q": 5}, 0, 100, 50),
        ({"distribution": "q_log_normal", "mu": 3, "sigma": 0.1, "q": 1}, 13, 31, math.exp(3)),
        ({"distribution": "beta", "a": 5, "b": 5}, 0, 1, 0.5),
        ({"distribution": "q_beta", "a": 5, "b": 5, "q": 0.25}, 0, 1, 0.5),
    ],
)
def test_each_distribution_has_its_bounds_and_its_middle(
    parameter: dict[str, Any], low: float, high: float, median: float
) -> None:
    values = drawn(parameter)
    assert min(values) >= low
    assert max(values) <= high
    between = sorted(values)[60], sorted(values)[140]
    assert between[0] <= median * 1.001
    assert between[1] >= median * 0.999
    if "q" in parameter:
        q = parameter["q"]
        assert all(abs(value / q - round(value / q)) < 1e-9 for value in values)
        assert all(isinstance(value, int) == isinstance(q, int) for value in values)


def test_values_have_their_probabilities() -> None:
    values = drawn(
        {"values": ["a", "b"], "probabilities": [0.1, 0.9], "distribution": "categorical_w_probabilities"}
    )
    assert 5 <= values.count("a") <= 40
    chosen = drawn({"values": [None, True, {"k": [1]}]}, 50)
    assert all(value in chosen for value in (None, True, {"k": [1]}))
    assert set(drawn({"value": "same"}, 5)) == {"same"}


def test_true_and_1_are_different_values() -> None:
    assert Categorical((1, True)).coordinates(True) == (0.0, 1.0)


def test_a_multiple_of_a_tiny_number_is_the_value_itself() -> None:
    assert nearest_multiple(1e-300, 1e10) == 1e10
    values = drawn({"distribution": "q_normal", "mu": 0, "sigma": 1e300, "q": 1e-9}, 3)
    assert all(math.isfinite(value) for value in values)


def branin(x: float, y: float) -> float:
    """A function with three minima of 0.398."""
    bent = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return bent + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def test_a_bayes_search_finds_a_minimum_in_fewer_runs_than_chance() -> None:
    search = sweep("bayes", {"x": {"min": -5.0, "max": 10.0}, "y": {"min": 0.0, "max": 15.0}})
    trials: list[Trial] = []
    for index in range(30):
        values = next_parameters(search, index, 3, trials)
        trials.append(Trial(values, branin(**values)))
    random = Random(1)
    by_chance = min(branin(random.uniform(-5, 10), random.uniform(0, 15)) for _ in range(30))
    best = min(trial.cost for trial in trials if trial.cost is not None)
    assert best < 0.6
    assert best < by_chance


def test_a_bayes_search_learns_values_that_are_no_numbers_and_avoids_what_fails() -> None:
    search = sweep("bayes", {"kind": {"values": ["good", "bad", "fails"]}, "x": {"min": 0.0, "max": 1.0}})
    cost = {"good": 0.0, "bad": 5.0, "fails": None}
    trials = [
        Trial({"kind": kind, "x": x / 4}, cost[kind]) for x in range(5) for kind in ("good", "bad", "fails")
    ]
    chosen = [next_parameters(search, index, 1, trials)["kind"] for index in range(10)]
    assert chosen.count("good") >= 8


def test_runs_at_the_same_time_try_different_values() -> None:
    search = sweep("bayes", {"x": {"min": 0.0, "max": 1.0}})
    trials = [Trial({"x": x / 10}, (x / 10 - 0.32) ** 2) for x in range(11)]
    first = next_parameters(search, 11, 1, trials)
    second = next_parameters(search, 11, 1, [*trials, Trial(first, None, ended=False)])
    assert abs(first["x"] - second["x"]) > 0.01


def test_what_runs_report_cannot_break_a_bayes_search() -> None:
    search = sweep("bayes", {"x": {"min": 0.0, "max": 1.0}})
    costs = (1e308, -1e308, math.nan, math.inf, 0.0, 0.0, 0.0)
    trials = [Trial({"x": "text" if index == 4 else 0.5}, cost) for index, cost in enumerate(costs)]
    trials += [Trial({"y": 1}, 1.0), Trial({}, None)]
    assert 0 <= next_parameters(search, 9, 1, trials)["x"] <= 1


def test_a_gaussian_process_goes_through_its_points_and_is_uncertain_elsewhere() -> None:
    points = np.linspace(0, 1, 9)[:, None]
    process = GaussianProcess(points, np.sin(6 * points[:, 0]))
    means, deviations = process.predict(np.array([[0.5], [0.4375], [3.0]]))
    assert means[:2] == pytest.approx(np.sin([3.0, 2.625]), abs=0.05)
    assert deviations[0] < 0.1 < deviations[2]


HYPERBAND = Hyperband((2, 4), eta=2.0)


def test_a_run_has_a_mark_at_each_bracket_that_it_reached() -> None:
    assert HYPERBAND.marks([3.0]) == []
    assert HYPERBAND.marks([3.0, math.nan, 2.0, 1.0]) == [2.0]
    assert HYPERBAND.marks([3.0, 2.0, 1.0, 5.0]) == [2.0, 1.0]


def test_the_worse_runs_end_at_a_bracket() -> None:
    assert not HYPERBAND.ends([], [[1.0], [2.0]])
    assert not HYPERBAND.ends([5.0], [])
    assert HYPERBAND.ends([5.0], [[1.0]])
    assert not HYPERBAND.ends([1.0], [[1.0], [2.0], [3.0]])
    assert HYPERBAND.ends([2.5], [[1.0], [2.0], [3.0]])


def test_only_a_strict_comparison_looks_back() -> None:
    others = [[1.0, 0.9], [1.1, 0.8]]
    assert not Hyperband((2, 4), eta=2.0).ends([5.0, 0.1], others)
    assert Hyperband((2, 4), eta=2.0, strict=True).ends([5.0, 0.1], others)


@pytest.mark.parametrize(
    ("sent", "brackets"),
    [
        ({"min_iter": 3}, (3, 9, 27, 81)),
        ({"min_iter": 2, "eta": 2}, (2, 4, 8, 16)),
        ({"max_iter": 27, "s": 2}, (3, 9)),
        ({"max_iter": 81, "s": 3, "eta": 3}, (3, 9, 27)),
    ],
)
def test_the_brackets_of_a_configuration(sent: dict[str, Any], brackets: tuple[int, ...]) -> None:
    search = sweep("random", {"x": {"value": 1}}, early_terminate={"type": "hyperband", **sent})
    assert search.early_termination.brackets[: len(brackets)] == brackets


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ([], "[]; expected an object with method and parameters"),
        ({"parameters": {"x": {"value": 1}}}, "method: missing; expected one of random, grid, bayes"),
        ({"method": "random"}, "parameters: missing"),
        ({"method": "random", "parameters": {"x": 3}}, "parameters.x: 3; expected an object"),
        ({"method": "random", "parameters": {"x": {}}}, "parameters.x: expected value, values, min and max"),
        ({"method": "random", "parameters": {"x": {"values": []}}}, "parameters.x.values: []"),
        ({"method": "random", "parameters": {"x": {"min": 2, "max": 1}}}, "min 2 is above max 1"),
        ({"method": "random", "parameters": {"x": {"min": 0.5}}}, "parameters.x.max: missing"),
        (
            {
                "method": "random",
                "parameters": {"x": {"min": 0, "max": 1, "distribution": "log_uniform_values"}},
            },
            "parameters.x.min: 0; expected a number above 0",
        ),
        (
            {"method": "random", "parameters": {"x": {"min": 0, "max": 1, "distribution": "flat"}}},
            "parameters.x.distribution: 'flat'; expected one of constant",
        ),
        (
            {"method": "random", "parameters": {"a": {"parameters": {"b": {"mu": 1, "sigma": 0}}}}},
            "parameters.a.b.sigma: 0; expected a number above 0",
        ),
        (
            {"method": "random", "parameters": {"x": {"values": [1], "probabilities": [0.3]}}},
            "parameters.x.probabilities",
        ),
        (
            {"method": "grid", "parameters": {"x": {"min": 0.0, "max": 1.0}}},
            "parameters.x: a grid search needs",
        ),
        (
            {
                "method": "grid",
                "parameters": {"x": {"min": 0, "max": 1, "q": 1e-300, "distribution": "q_uniform"}},
            },
            "parameters.x: a grid search needs",
        ),
        ({"method": "bayes", "parameters": {"x": {"value": 1}}}, "metric: missing; a bayes search needs one"),
        ({"method": "random", "metric": {"name": "l", "goal": "up"}}, "metric.goal: 'up'"),
        ({"method": "random", "run_cap": True}, "run_cap: True; expected an integer from 1 to 1,000,000"),
        ({"method": "random", "early_terminate": {"type": "median"}}, "early_terminate: "),
        ({"method": "random", "controller": {"type": "local"}}, "controller.type: 'local' is not supported"),
        ({"method": "random", "early_terminate": {"type": "hyperband", "eta": 1e200}}, "up to 1000"),
        (
            {"method": "random", "parameters": {"x": {"distribution": "beta", "a": 1e200, "b": 1e200}}},
            "parameters.x.a: 1e+200; expected a number from 1e-06 to 1e+06",  # Python's would never return
        ),
        ({"method": "random", "parameters": {"x": {"min": -1e308, "max": 1.0}}}, "x.min: -1e+308"),
        (
            {"method": "bayes", "parameters": {name: {"values": [*range(600)]} for name in "ab"}},
            "expected at most 1,000 values in all lists of a bayes search",
        ),
    ],
)
def test_what_is_wrong_with_a_configuration_is_named(sent: Any, problem: str) -> None:
    with pytest.raises(InvalidConfiguration) as raised:
        parse_configuration(sent)
    assert problem in str(raised.value)


def test_all_distributions_are_known_and_a_hostile_configuration_has_few_problems() -> None:
    for name in DISTRIBUTIONS:
        parameter = {"distribution": name, "value": 1, "values": [1], "min": 1, "max": 2, "a": 1, "b": 1}
        assert drawn(parameter, 1)[0] is not None
    with pytest.raises(InvalidConfiguration) as raised:
        parse_configuration(
            {"method": "random", "parameters": {f"p{n}": "x" * 10_000 for n in range(10_000)}}
        )
    assert len(str(raised.value)) < 3000
