"""`runvitals neuron`: write and check the configuration file of AWS's neuron-monitor."""

from __future__ import annotations

import argparse
import json
import sys

from runvitals.base.terminal_text import inert
from runvitals.cli import WrongUsage
from runvitals.relay.destinations.cloudwatch import neuron_config


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals neuron`."""
    parser.description = "Write and check the configuration file of AWS's neuron-monitor."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    config = actions.add_parser(
        "config",
        help="print a minimal configuration for the given metrics",
        description="Print the smallest configuration for a choice of metrics. "
        "Metrics that neuron-monitor does not read cost nothing.",
    )
    config.add_argument(
        "--metrics",
        required=True,
        metavar="NAME,…",
        help="groups (memory_used), metrics (neuroncore_utilization), CloudWatch names, or globs",
    )
    config.add_argument("--period", metavar="TIME", help="between reports, e.g. 5s or 1m; default: 5s")
    config.add_argument(
        "--tag-filter",
        default=".*",
        metavar="EXPRESSION",
        help="only processes whose NEURON_PROCESS_TAG matches",
    )
    check = actions.add_parser(
        "check",
        help="check a configuration; exit code 1 if it is invalid",
        description="Report what is wrong with a configuration, and where.",
    )
    check.add_argument("file", metavar="FILE", help="configuration file, or `-` for stdin")


def run(arguments: argparse.Namespace) -> int:
    """Print a configuration, or check one; return 1 if it is invalid."""
    return _config(arguments) if arguments.action == "config" else _check(arguments.file)


def _config(arguments: argparse.Namespace) -> int:
    metrics = [name.strip() for name in arguments.metrics.split(",") if name.strip()]
    if not metrics:
        raise WrongUsage("--metrics: expected at least one metric, for example neuroncore_utilization")
    config = neuron_config.minimal(metrics, arguments.period, arguments.tag_filter)
    print(json.dumps(config, indent=2, ensure_ascii=False))
    more = neuron_config.unselected_metrics(metrics)
    if more:
        chosen = " ".join(f"--include '{name}'" for name in metrics)
        print(
            f"neuron-monitor reads whole groups, so its reports contain {len(more)} other metrics too "
            f"({', '.join(more[:3])}{' …' if len(more) > 3 else ''}). "
            f"To send only the selected metrics: runvitals cloudwatch {chosen}",
            file=sys.stderr,
        )
    return 0


def _check(path: str) -> int:
    name = "stdin" if path == "-" else path
    if path == "-":
        text = sys.stdin.read()
    else:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
    problems = neuron_config.check(text)
    for problem in problems:
        location = name if problem.line is None else f"{name}:{problem.line}"
        kind = "warning: " if problem.warning else ""
        print(inert(": ".join(part for part in (location, problem.where, kind + problem.text) if part)))
    if any(not problem.warning for problem in problems):
        return 1
    print(f"{inert(name)}: valid neuron-monitor configuration")
    return 0
