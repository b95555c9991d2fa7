from __future__ import annotations

import json

import pytest

from runvitals.relay.destinations.cloudwatch.neuron_config import check, minimal


def test_minimal_config_of_core_utilization() -> None:
    assert minimal(["neuroncore_utilization"]) == {
        "neuron_runtimes": [{"tag_filter": ".*", "metrics": [{"type": "neuroncore_counters"}]}]
    }


@pytest.mark.parametrize(
    ("metric", "group"),
    [
        ("neuroncore_counters", "neuroncore_counters"),
        ("NeuronCoreUtilizationNC31", "neuroncore_counters"),
        ("NeuronCoreUtilizationNC*", "neuroncore_counters"),
        ("total_latency.p99", "execution_stats"),
        ("error_summary", "execution_stats"),
        ("memory_used", "memory_used"),
    ],
)
def test_metric_by_any_of_its_names(metric: str, group: str) -> None:
    assert minimal([metric])["neuron_runtimes"][0]["metrics"] == [{"type": group}]


def test_minimal_config_of_system_groups() -> None:
    assert minimal(["EccMemUncorrectedND3", "memory_used_bytes"], period="10s") == {
        "period": "10s",
        "system_metrics": [{"type": "memory_info"}, {"type": "neuron_hw_counters"}],
    }


def test_unknown_metric_error_lists_known_ones() -> None:
    with pytest.raises(
        ValueError, match=r"unknown neuron-monitor metric 'power'.*neuroncore_counters.*effective_flops"
    ):
        minimal(["power"])


def test_invalid_period_or_expression() -> None:
    with pytest.raises(ValueError, match='period: invalid period "5"'):
        minimal(["memory_used"], period="5")
    with pytest.raises(ValueError, match=r"tag_filter: invalid regular expression"):
        minimal(["memory_used"], tag_filter="(")


def problems(text: str) -> list[str]:
    return [f"{p.line}: {p.where}: {p.text}" for p in check(text)]


def test_valid_config_has_no_problems() -> None:
    assert check(json.dumps(minimal(["neuroncore_*", "memory_used", "vcpu_usage"], "1m30s"))) == []


def config(metrics: str = '{"type": "memory_used"}', tag: str = '"tag_filter": ".*",', more: str = "") -> str:
    return f'{{\n{more}\n"neuron_runtimes": [{{{tag}\n"metrics": [\n{metrics}\n]}}]}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            config('{"type": "power"}'),
            '5: neuron_runtimes[0].metrics[0].type: unknown group "power"',
        ),
        (config('{"type": "vcpu_usage"}'), "move it to system_metrics"),
        (config('{"type": "inference_stats"}'), 'is now called "execution_stats"'),
        (
            config('{"type": "memory_used"},\n{"type": "memory_used"}'),
            "6: neuron_runtimes[0].metrics[1].type",
        ),
        (config('{"typ": "memory_used"}'), 'unknown field "typ"; expected one of type, period'),
        (config('{"period": "1s"}'), "missing type; expected one of neuroncore_counters, memory_used"),
        (config('"memory_used"'), 'expected an object {"type": "neuroncore_counters"}; got "memory_used"'),
        (config(tag=""), "3: neuron_runtimes[0]: missing tag_filter"),
        (config(tag='"tag_filter": "(?=a)",'), "neither lookaround"),
        (
            config(tag='"tag_filter": ".*", "address": "unix:/run/neuron.sock",'),
            "neuron-rtd, which no longer exists",
        ),
        (config(more='"period": 5,'), "2: period: expected a string"),
        (config(more='"period": "5 s",'), '2: period: invalid period "5 s"'),
        (config(more='"period": "0s",'), 'supports "1s" or longer'),
        (config(more='"period": "500ms",'), "is too short"),
        (config(more='"system_metrics": {},'), "2: system_metrics: expected a list"),
        (config(more='"system_metrics": [{"type": "memory_used"}],'), "move it to neuron_runtimes"),
        ("[]", "1: : expected an object"),
        ("{}", "1: : no metrics selected"),
        ('{\n"period": "1s", # all\n}', "2: : column 17: invalid JSON: comments are not allowed"),
        ('{"period": "1s",}', "comma before the closing bracket"),
        ("neuron", "1: : column 1: invalid JSON: Expecting value"),
    ],
)
def test_problem_names_line_and_expected_values(text: str, message: str) -> None:
    lines = problems(text)
    assert message in lines[0]


def test_problems_are_in_file_order() -> None:
    lines = problems('{\n"perod": "1s",\n"system_metrics": [\n{"type": "cpu"},\n{}]\n}')
    assert [datum.partition(":")[0] for datum in lines] == ["2", "4", "5"]
