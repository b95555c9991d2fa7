"""Writes minimal configuration files for neuron-monitor, and checks existing ones.

neuron-monitor reads whole groups of metrics. It reports only the groups in its configuration, so those left
out cannot be sent and cost nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from runvitals.relay.destinations.cloudwatch import neuron_report
from runvitals.relay.destinations.cloudwatch.datum import MetricReading
from runvitals.relay.destinations.cloudwatch.json_line_numbers import Path, line_numbers
from runvitals.relay.destinations.cloudwatch.metric_selection import spellings
from runvitals.relay.destinations.cloudwatch.neuron_report import RUNTIME_GROUPS, SYSTEM_GROUPS

# Group names of earlier versions, and their current names.
_OLD_NAMES = {
    "nc_counters": "neuroncore_counters",
    "runtime_cpu_usage": "neuron_runtime_vcpu_usage",
    "inference_stats": "execution_stats",
    "hw_counters": "neuron_hw_counters",
}
_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_MIN_INTERVAL_S = 1.0

# Syntax of Python's regular expressions that Go's, which neuron-monitor uses, do not support.
_NOT_GO = re.compile(r"\(\?(?:=|!|<=|<!|P=|\()|\\[1-9]")


class ConfigProblem(NamedTuple):
    """An error in a configuration.

    Args:
        line: its line in the file, from 1; None if it concerns the whole file.
        where: `neuron_runtimes[0].metrics[1].type`; "" for the root.
        text: what is wrong, and what is expected.
        warning: neuron-monitor accepts the configuration, but its effect is probably not the intended one.
    """

    line: int | None
    where: str
    text: str
    warning: bool = False


def minimal(metrics: Sequence[str], period: str | None = None, tag_filter: str = ".*") -> dict[str, Any]:
    """Return the smallest configuration that includes the given metrics.

    Args:
        metrics: groups (`neuroncore_counters`), neuron-monitor's fields (`neuroncore_utilization`),
            CloudWatch names (`NeuronCoreUtilizationNC0`), or globs that match them.
        period: time between two reports, `5s`; None: neuron-monitor's default, 5 s.
        tag_filter: a regular expression for the NEURON_PROCESS_TAG of the processes to report.

    Raises:
        ValueError: unknown metric, invalid period or invalid regular expression.

    Example:
        >>> minimal(["neuroncore_utilization"])
        {'neuron_runtimes': [{'tag_filter': '.*', 'metrics': [{'type': 'neuroncore_counters'}]}]}
    """
    chosen = {group for metric in metrics for group in groups_of(metric)}
    config: dict[str, Any] = {}
    if period is not None:
        config["period"] = period
    if runtime := [{"type": group} for group in RUNTIME_GROUPS if group in chosen]:
        config["neuron_runtimes"] = [{"tag_filter": tag_filter, "metrics": runtime}]
    if system := [{"type": group} for group in SYSTEM_GROUPS if group in chosen]:
        config["system_metrics"] = system
    for problem in check(json.dumps(config)):
        if not problem.warning:
            raise ValueError(f"{problem.where}: {problem.text}")
    return config


def groups_of(metric: str) -> list[str]:
    """Return the groups that include a metric.

    Raises:
        ValueError: unknown metric; the text lists the known ones.
    """
    pattern = _of_first_device(metric)
    rows = known_metrics()
    matching = {row.group for row in rows if any(fnmatchcase(name, pattern) for name in spellings(row))}
    if not matching:
        groups = ", ".join((*RUNTIME_GROUPS, *SYSTEM_GROUPS))
        fields = ", ".join(dict.fromkeys(row.field for row in rows))
        raise ValueError(
            f"unknown neuron-monitor metric {metric!r}; expected one of the groups {groups}, "
            f"or of their metrics {fields}"
        )
    return sorted(matching)


def unselected_metrics(metrics: Sequence[str]) -> list[str]:
    """Return the CloudWatch names of the other metrics in the same groups, which are reported too."""
    groups = {group for metric in metrics for group in groups_of(metric)}
    patterns = [_of_first_device(metric) for metric in metrics]
    return [
        row.series.name
        for row in known_metrics()
        if row.group in groups
        and not any(fnmatchcase(name, glob) for glob in patterns for name in spellings(row))
    ]


def _of_first_device(metric: str) -> str:
    """Return the metric of core 0 or device 0, the only ones in `known_metrics`."""
    return re.sub(r"(NC|ND)(\d+|\*)$", r"\g<1>0", metric)


def known_metrics() -> list[MetricReading]:
    """Return every metric that a report can contain, for one core and one device."""
    return neuron_report.read(json.dumps(_EXAMPLE).encode()).readings


def check(text: str) -> list[ConfigProblem]:
    """Return the problems of a configuration, in the order of the file; empty if it is valid."""
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        return [ConfigProblem(error.lineno, "", f"column {error.colno}: {_syntax(text, error)}")]
    except RecursionError:
        return [ConfigProblem(None, "", "nested too deeply")]
    checker = _Checker(line_numbers(text))
    checker.root(config)
    return sorted(checker.problems, key=lambda problem: problem.line or 0)


def _syntax(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :].lstrip()
    if rest.startswith(("#", "//", "/*")):
        return "invalid JSON: comments are not allowed"
    if rest.startswith(("}", "]")) and text[: error.pos].rstrip().endswith(","):
        return "invalid JSON: comma before the closing bracket"
    return f"invalid JSON: {error.msg}"


class _Checker:
    """Collects the problems of a configuration, each with its line."""

    def __init__(self, lines: Mapping[Path, int]) -> None:
        self.problems: list[ConfigProblem] = []
        self._lines = lines

    def root(self, config: Any) -> None:
        if not self._is(config, dict, (), 'an object {"neuron_runtimes": […], "system_metrics": […]}'):
            return
        self._keys(config, (), ("period", "neuron_runtimes", "system_metrics"))
        self._period(config, ())
        runtimes = config.get("neuron_runtimes", [])
        if self._is(runtimes, list, ("neuron_runtimes",), "a list of objects with tag_filter and metrics"):
            for i, runtime in enumerate(runtimes):
                self._runtime(runtime, ("neuron_runtimes", i))
        system = config.get("system_metrics", [])
        self._metrics(system, ("system_metrics",), SYSTEM_GROUPS)
        if not runtimes and not system:
            self._add((), "no metrics selected: reports will only identify the instance", True)

    def _runtime(self, runtime: Any, path: Path) -> None:
        if not self._is(runtime, dict, path, "an object with tag_filter and metrics"):
            return
        self._keys(runtime, path, ("tag_filter", "period", "metrics"))
        self._period(runtime, path)
        if "tag_filter" not in runtime:
            self._add(
                path,
                'missing tag_filter, which some versions require; "tag_filter": ".*" matches all processes',
            )
        elif self._is(
            runtime["tag_filter"], str, (*path, "tag_filter"), 'a string; ".*" matches all processes'
        ):
            self._expression(runtime["tag_filter"], (*path, "tag_filter"))
        if "metrics" not in runtime:
            self._add(path, f"missing metrics; expected a list of {', '.join(RUNTIME_GROUPS)}")
        else:
            self._metrics(runtime["metrics"], (*path, "metrics"), RUNTIME_GROUPS)

    def _metrics(self, metrics: Any, path: Path, allowed: Sequence[str]) -> None:
        if not self._is(metrics, list, path, f'a list of objects {{"type": "{allowed[0]}"}}'):
            return
        types: set[str] = set()
        for i, metric in enumerate(metrics):
            where = (*path, i)
            if not self._is(metric, dict, where, f'an object {{"type": "{allowed[0]}"}}'):
                continue
            self._keys(metric, where, ("type", "period"))
            self._period(metric, where)
            if "type" not in metric:
                self._add(where, f"missing type; expected one of {', '.join(allowed)}")
            elif self._is(metric["type"], str, (*where, "type"), f"one of {', '.join(allowed)}"):
                self._group(metric["type"], (*where, "type"), allowed)
                if metric["type"] in types:
                    self._add((*where, "type"), f'duplicate group "{metric["type"]}"', True)
                types.add(metric["type"])

    def _group(self, group: str, path: Path, allowed: Sequence[str]) -> None:
        if group in allowed:
            return
        if group in RUNTIME_GROUPS:
            self._add(path, f'group "{group}" describes processes; move it to neuron_runtimes[…].metrics')
        elif group in SYSTEM_GROUPS:
            self._add(path, f'group "{group}" describes the system; move it to system_metrics')
        elif group in _OLD_NAMES:
            self._add(path, f'group "{group}" is now called "{_OLD_NAMES[group]}"')
        else:
            self._add(path, f'unknown group "{group}"; expected one of {", ".join(allowed)}')

    def _period(self, holder: Mapping[str, Any], path: Path) -> None:
        if "period" not in holder:
            return
        period, where = holder["period"], (*path, "period")
        form = 'a string with a number and ns, us, ms, s, m or h: "5s", "1.5s", "1m30s"'
        if not self._is(period, str, where, form):
            return
        if not _DURATION.fullmatch(period):
            self._add(where, f'invalid period "{period}"; expected {form}')
            return
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(period))
        if seconds <= 0:
            self._add(where, f'invalid period "{period}"; neuron-monitor supports "1s" or longer')
        elif seconds < _MIN_INTERVAL_S:
            self._add(where, f'period "{period}" is too short: neuron-monitor uses about 1s', True)

    def _expression(self, text: str, path: Path) -> None:
        if _NOT_GO.search(text):
            self._add(
                path,
                f"invalid regular expression {text!r}: Go supports neither lookaround nor backreferences",
            )
            return
        try:
            re.compile(text)
        except re.error as error:
            self._add(path, f"invalid regular expression {text!r}: {error}")

    def _keys(self, holder: Mapping[str, Any], path: Path, allowed: Sequence[str]) -> None:
        for key in holder:
            if key == "address" and "tag_filter" in allowed:
                self._add((*path, key), "address was for neuron-rtd, which no longer exists; use tag_filter")
            elif key not in allowed:
                self._add((*path, key), f'unknown field "{key}"; expected one of {", ".join(allowed)}')

    def _is(self, value: Any, kind: type, path: Path, expected: str) -> bool:
        if isinstance(value, kind):
            return True
        self._add(path, f"expected {expected}; got {json.dumps(value)[:60]}")
        return False

    def _add(self, path: Path, text: str, warning: bool = False) -> None:
        self.problems.append(ConfigProblem(self._lines.get(path), "".join(_steps(path)), text, warning))


def _steps(path: Path) -> Iterator[str]:
    for i, step in enumerate(path):
        yield f"[{step}]" if isinstance(step, int) else f".{step}" if i else step


_PERCENTILES = {"p0": 0.0, "p1": 0.0, "p25": 0.0, "p50": 0.0, "p75": 0.0, "p99": 0.0, "p100": 0.0}
_HOST_USES = {"application_memory": 0, "constants": 0, "dma_buffers": 0, "tensors": 0}
_CORE_USES = {
    "constants": 0,
    "model_code": 0,
    "model_shared_scratchpad": 0,
    "runtime_memory": 0,
    "tensors": 0,
}
_CPU_USES = {"user": 0, "nice": 0, "system": 0, "idle": 0, "io_wait": 0, "irq": 0, "soft_irq": 0}

# A report with every documented metric, for one core and one device.
_EXAMPLE: dict[str, Any] = {
    "neuron_runtime_data": [
        {
            "report": {
                "neuroncore_counters": {
                    "neuroncores_in_use": {
                        "0": {
                            "neuroncore_utilization": 0.0,
                            "flops": 0,
                            "effective_flops": 0,
                            "v3d": {"nc_v3.0": {"neuroncore_utilization": 0.0}},
                        }
                    }
                },
                "memory_used": {
                    "neuron_runtime_used_bytes": {
                        "host": 0,
                        "neuron_device": 0,
                        "usage_breakdown": {"host": _HOST_USES, "neuroncore_memory_usage": {"0": _CORE_USES}},
                    }
                },
                "neuron_runtime_vcpu_usage": {"vcpu_usage": {"user": 0.0, "system": 0.0}},
                "execution_stats": {
                    "error_summary": dict.fromkeys(
                        ("generic", "numerical", "transient", "model", "runtime", "hardware"), 0
                    ),
                    "execution_summary": dict.fromkeys(
                        (
                            "completed",
                            "completed_with_err",
                            "completed_with_num_err",
                            "timed_out",
                            "incorrect_input",
                            "failed_to_queue",
                        ),
                        0,
                    ),
                    "latency_stats": {"total_latency": _PERCENTILES, "device_latency": _PERCENTILES},
                },
            }
        }
    ],
    "system_data": {
        "vcpu_usage": {"average_usage": _CPU_USES, "context_switch_count": 0},
        "memory_info": dict.fromkeys(
            ("memory_total_bytes", "memory_used_bytes", "swap_total_bytes", "swap_used_bytes"), 0
        ),
        "neuron_hw_counters": {
            "neuron_devices": [
                {
                    "neuron_device_index": 0,
                    "mem_ecc_corrected": 0,
                    "mem_ecc_uncorrected": 0,
                    "sram_ecc_corrected": 0,
                    "sram_ecc_uncorrected": 0,
                }
            ]
        },
    },
}
