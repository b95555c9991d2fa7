from __future__ import annotations

import json

import pytest

from runvitals.relay.destinations.cloudwatch.neuron_config import check, minimal


def test_core_utilization_alone_is_one_group() -> None:
    """The configuration of an engineer who wants four metrics in place of 25."""
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
def test_a_metric_by_any_of_its_names(metric: str, group: str) -> None:
    assert minimal([metric])["neuron_runtimes"][0]["metrics"] == [{"type": group}]


def test_system_groups_stand_in_their_own_list() -> None:
    assert minimal(["EccMemUncorrectedND3", "memory_used_bytes"], period="10s") == {
        "period": "10s",
        "system_metrics": [{"type": "memory_info"}, {"type": "neuron_hw_counters"}],
    }


def test_an_unknown_metric_is_refused_with_all_there_are() -> None:
    with pytest.raises(
        ValueError, match=r"no metric 'power'.*Its groups: neuroncore_counters.*effective_flops"
    ):
        minimal(["power"])


def test_a_bad_period_or_expression_is_refused() -> None:
    with pytest.raises(ValueError, match='period: "5" is no period'):
        minimal(["memory_used"], period="5")
    with pytest.raises(ValueError, match=r"tag_filter: .* is no regular expression"):
        minimal(["memory_used"], tag_filter="(")


def problems(text: str) -> list[str]:
    return [f"{p.line}: {p.where}: {p.text}" for p in check(text)]


def test_a_good_one_has_no_problems() -> None:
    assert check(json.dumps(minimal(["neuroncore_*", "memory_used", "vcpu_usage"], "1m30s"))) == []


def config(metrics: str = '{"type": "memory_used"}', tag: str = '"tag_filter": ".*",', more: str = "") -> str:
    return f'{{\n{more}\n"neuron_runtimes": [{{{tag}\n"metrics": [\n{metrics}\n]}}]}}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            config('{"type": "power"}'),
            '5: neuron_runtimes[0].metrics[0].type: "power" is no group of metrics',
        ),
        (config('{"type": "vcpu_usage"}'), "it belongs into system_metrics"),
        (config('{"type": "inference_stats"}'), 'is called "execution_stats" today'),
        (
            config('{"type": "memory_used"},\n{"type": "memory_used"}'),
            "6: neuron_runtimes[0].metrics[1].type",
        ),
        (config('{"typ": "memory_used"}'), '"typ" is not known here; there are type, period'),
        (config('{"period": "1s"}'), "type is missing: one of neuroncore_counters, memory_used"),
        (config('"memory_used"'), 'must be an object: {"type": "neuroncore_counters"}; it is "memory_used"'),
        (config(tag=""), "3: neuron_runtimes[0]: tag_filter is missing"),
        (config(tag='"tag_filter": "(?=a)",'), "no lookaround"),
        (
            config(tag='"tag_filter": ".*", "address": "unix:/run/neuron.sock",'),
            "neuron-rtd, which is no more",
        ),
        (config(more='"period": 5,'), "2: period: must be a text"),
        (config(more='"period": "5 s",'), '2: period: "5 s" is no period'),
        (config(more='"period": "0s",'), "no time at all"),
        (config(more='"period": "500ms",'), "shorter than neuron-monitor can"),
        (config(more='"system_metrics": {},'), "2: system_metrics: must be a list"),
        (config(more='"system_metrics": [{"type": "memory_used"}],'), "it belongs into neuron_runtimes"),
        ("[]", "1: : must be an object"),
        ("{}", "1: : no metrics are asked for"),
        ('{\n"period": "1s", # all\n}', "2: : column 17: not JSON: it has no comments"),
        ('{"period": "1s",}', "a comma before the closing bracket"),
        ("neuron", "1: : column 1: not JSON: Expecting value"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_what_is_allowed(text: str, complaint: str) -> None:
    found = problems(text)
    assert complaint in found[0]


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    found = problems('{\n"perod": "1s",\n"system_metrics": [\n{"type": "cpu"},\n{}]\n}')
    assert [one.partition(":")[0] for one in found] == ["2", "4", "5"]
