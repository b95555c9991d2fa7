"""The configuration file of neuron-monitor: the smallest for a choice of metrics, and what is wrong with one.

neuron-monitor reads whole groups of metrics. What it does not read it does not print, and nobody pays for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from runvitals.relay.destinations.cloudwatch import neuron_report
from runvitals.relay.destinations.cloudwatch.datum import MetricReading
from runvitals.relay.destinations.cloudwatch.json_line_numbers import Path, lines_of
from runvitals.relay.destinations.cloudwatch.metric_selection import spellings
from runvitals.relay.destinations.cloudwatch.neuron_report import RUNTIME_GROUPS, SYSTEM_GROUPS

# Groups of earlier versions, and what they are called now.
_OLD_NAMES = {
    "nc_counters": "neuroncore_counters",
    "runtime_cpu_usage": "neuron_runtime_vcpu_usage",
    "inference_stats": "execution_stats",
    "hw_counters": "neuron_hw_counters",
}
_DURATION = re.compile(r"(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+")
_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHORTEST_S = 1.0

# What Python's expressions have and Go's, which neuron-monitor uses, have not.
_NOT_GO = re.compile(r"\(\?(?:=|!|<=|<!|P=|\()|\\[1-9]")


class ConfigProblem(NamedTuple):
    """Something wrong with a configuration.

    Args:
        line: in the file, from 1; None where it is about all of it.
        where: `neuron_runtimes[0].metrics[1].type`; "" for the whole.
        text: what is wrong, and what is allowed.
        warning: neuron-monitor takes it, but it will not do what it looks like.
    """

    line: int | None
    where: str
    text: str
    warning: bool = False


def minimal(metrics: Sequence[str], period: str | None = None, tag_filter: str = ".*") -> dict[str, Any]:
    """The smallest configuration that has these metrics.

    Args:
        metrics: groups (`neuroncore_counters`), neuron-monitor's fields (`neuroncore_utilization`), names in
            CloudWatch (`NeuronCoreUtilizationNC0`), or globs over them.
        period: between two reports, `5s`; None: neuron-monitor's own 5 s.
        tag_filter: expression for the NEURON_PROCESS_TAG of the processes to report.

    Raises:
        ValueError: a metric that is not known, a period or expression that cannot be.

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
    """The groups that hold a metric.

    Raises:
        ValueError: none does; the text names what is known.
    """
    # All cores and devices come together: the example below has one of each.
    wanted = re.sub(r"(NC|ND)(\d+|\*)$", r"\g<1>0", metric)
    rows = vocabulary()
    found = {row.group for row in rows if any(fnmatchcase(name, wanted) for name in spellings(row))}
    if not found:
        groups = ", ".join((*RUNTIME_GROUPS, *SYSTEM_GROUPS))
        fields = ", ".join(dict.fromkeys(row.field for row in rows))
        raise ValueError(
            f"neuron-monitor has no metric {metric!r}. Its groups: {groups}. Their metrics: {fields}"
        )
    return sorted(found)


def beside(metrics: Sequence[str]) -> list[str]:
    """The names of metrics that come with the chosen ones, as they are in the same groups."""
    groups = {group for metric in metrics for group in groups_of(metric)}
    wanted = [re.sub(r"(NC|ND)(\d+|\*)$", r"\g<1>0", metric) for metric in metrics]
    return [
        row.series.name
        for row in vocabulary()
        if row.group in groups and not any(fnmatchcase(n, w) for w in wanted for n in spellings(row))
    ]


def vocabulary() -> list[MetricReading]:
    """Every metric that a report can have, for one core and one device."""
    return neuron_report.read(json.dumps(_EXAMPLE).encode()).readings


def check(text: str) -> list[ConfigProblem]:
    """What is wrong with a configuration, in the order of the file; [] for one that will do."""
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        return [ConfigProblem(error.lineno, "", f"column {error.colno}: {_syntax(text, error)}")]
    except RecursionError:
        return [ConfigProblem(None, "", "nested too deeply to be a configuration")]
    checker = _Checker(lines_of(text))
    checker.root(config)
    return sorted(checker.problems, key=lambda problem: problem.line or 0)


def _syntax(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos :].lstrip()
    if rest.startswith(("#", "//", "/*")):
        return "not JSON: it has no comments"
    if rest.startswith(("}", "]")) and text[: error.pos].rstrip().endswith(","):
        return "not JSON: a comma before the closing bracket"
    return f"not JSON: {error.msg}"


class _Checker:
    """Collects problems, each with the line it is in."""

    def __init__(self, lines: Mapping[Path, int]) -> None:
        self.problems: list[ConfigProblem] = []
        self._lines = lines

    def root(self, config: Any) -> None:
        if not self._is(config, dict, (), 'an object: {"neuron_runtimes": […], "system_metrics": […]}'):
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
            self._add((), "no metrics are asked for: reports will say what instance this is, no more", True)

    def _runtime(self, runtime: Any, path: Path) -> None:
        if not self._is(runtime, dict, path, "an object with tag_filter and metrics"):
            return
        self._keys(runtime, path, ("tag_filter", "period", "metrics"))
        self._period(runtime, path)
        if "tag_filter" not in runtime:
            self._add(
                path,
                'tag_filter is missing, and some versions need it: "tag_filter": ".*" takes all processes',
            )
        elif self._is(runtime["tag_filter"], str, (*path, "tag_filter"), 'a text: ".*" takes all processes'):
            self._expression(runtime["tag_filter"], (*path, "tag_filter"))
        if "metrics" not in runtime:
            self._add(path, f"metrics is missing: a list of any of {_named(RUNTIME_GROUPS)}")
        else:
            self._metrics(runtime["metrics"], (*path, "metrics"), RUNTIME_GROUPS)

    def _metrics(self, metrics: Any, path: Path, allowed: Sequence[str]) -> None:
        if not self._is(metrics, list, path, f'a list of objects: {{"type": "{allowed[0]}"}}'):
            return
        seen: set[str] = set()
        for i, metric in enumerate(metrics):
            where = (*path, i)
            if not self._is(metric, dict, where, f'an object: {{"type": "{allowed[0]}"}}'):
                continue
            self._keys(metric, where, ("type", "period"))
            self._period(metric, where)
            if "type" not in metric:
                self._add(where, f"type is missing: one of {_named(allowed)}")
            elif self._is(metric["type"], str, (*where, "type"), f"one of {_named(allowed)}"):
                self._group(metric["type"], (*where, "type"), allowed)
                if metric["type"] in seen:
                    self._add((*where, "type"), f'"{metric["type"]}" is asked for twice', True)
                seen.add(metric["type"])

    def _group(self, group: str, path: Path, allowed: Sequence[str]) -> None:
        if group in allowed:
            return
        if group in RUNTIME_GROUPS:
            self._add(path, f'"{group}" is about processes: it belongs into neuron_runtimes[…].metrics')
        elif group in SYSTEM_GROUPS:
            self._add(path, f'"{group}" is about the system: it belongs into system_metrics')
        elif group in _OLD_NAMES:
            self._add(path, f'"{group}" is called "{_OLD_NAMES[group]}" today')
        else:
            self._add(path, f'"{group}" is no group of metrics; here there are {_named(allowed)}')

    def _period(self, holder: Mapping[str, Any], path: Path) -> None:
        if "period" not in holder:
            return
        period, where = holder["period"], (*path, "period")
        form = 'a text with a number and ns, us, ms, s, m or h: "5s", "1.5s", "1m30s"'
        if not self._is(period, str, where, form):
            return
        if not _DURATION.fullmatch(period):
            self._add(where, f'"{period}" is no period; it is {form}')
            return
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(period))
        if seconds <= 0:
            self._add(where, f'"{period}" is no time at all; the shortest that neuron-monitor keeps is "1s"')
        elif seconds < _SHORTEST_S:
            self._add(where, f'"{period}" is shorter than neuron-monitor can: it keeps to about 1s', True)

    def _expression(self, text: str, path: Path) -> None:
        if _NOT_GO.search(text):
            self._add(path, f"{text!r}: Go's expressions have no lookaround and no references to groups")
            return
        try:
            re.compile(text)
        except re.error as error:
            self._add(path, f"{text!r} is no regular expression: {error}")

    def _keys(self, holder: Mapping[str, Any], path: Path, allowed: Sequence[str]) -> None:
        for key in holder:
            if key == "address" and "tag_filter" in allowed:
                self._add((*path, key), "address is of neuron-rtd, which is no more: write tag_filter")
            elif key not in allowed:
                self._add((*path, key), f'"{key}" is not known here; there are {_named(allowed)}')

    def _is(self, value: Any, kind: type, path: Path, allowed: str) -> bool:
        if isinstance(value, kind):
            return True
        self._add(path, f"must be {allowed}; it is {json.dumps(value)[:60]}")
        return False

    def _add(self, path: Path, text: str, warning: bool = False) -> None:
        self.problems.append(ConfigProblem(self._lines.get(path), "".join(_steps(path)), text, warning))


def _steps(path: Path) -> Iterator[str]:
    for i, step in enumerate(path):
        yield f"[{step}]" if isinstance(step, int) else f".{step}" if i else step


def _named(names: Sequence[str]) -> str:
    return ", ".join(names)


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

# A report with everything that neuron-monitor documents, of one core and one device.
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
