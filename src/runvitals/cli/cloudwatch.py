"""`neuron-monitor | runvitals cloudwatch`: send metrics to Amazon CloudWatch, or estimate the cost."""

from __future__ import annotations

import argparse

from runvitals.cli.argument_types import integer_between, number_between
from runvitals.cli.data_folder import add_dir


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals cloudwatch`."""
    parser.description = (
        "Reads neuron-monitor's reports from stdin and sends the selected metrics to Amazon "
        "CloudWatch, once a minute. To send the metrics of runs, use the destination `cloudwatch`; --run "
        "with --dry-run estimates its cost."
    )
    _add_destination(parser.add_argument_group("destination"))
    _add_selection(parser.add_argument_group("selection"))
    _add_cost(parser.add_argument_group("cost"))
    add_dir(parser)


def _add_destination(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--region", metavar="REGION", help="default: boto3's default region")
    group.add_argument("--namespace", default="Neuron", metavar="NAME", help="default: Neuron")
    group.add_argument(
        "--emf",
        nargs="?",
        const="-",
        metavar="FILE",
        help="write the embedded metric format to FILE or stdout instead; does not need boto3",
    )


def _add_selection(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="GLOB",
        help="send only matching metrics: a name (NeuronCoreUtilization*), a field of neuron-monitor "
        "(neuroncore_utilization), or a group (memory_used); default: 25 metrics on an inf1.xlarge",
    )
    group.add_argument(
        "--exclude", action="append", default=[], metavar="GLOB", help="do not send matching metrics"
    )
    group.add_argument(
        "--dimension",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="add a dimension; InstanceId, ClusterName, ServiceName, TaskId, PodName, Host and others are "
        "looked up if no value is given",
    )
    group.add_argument(
        "--resolution", type=int, choices=(1, 60), default=60, help="seconds; 1 is high resolution"
    )
    group.add_argument(
        "--every",
        type=number_between(1, 3600),
        default=60.0,
        metavar="SECONDS",
        help="how often to send; default: 60",
    )


def _add_cost(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--dry-run", action="store_true", help="send nothing; print what would be sent and the monthly cost"
    )
    group.add_argument(
        "--instances",
        type=integer_between(1, 1_000_000),
        default=1,
        metavar="N",
        help="with --dry-run: number of instances",
    )
    group.add_argument("--run", metavar="RUN", help="with --dry-run: use a run's metrics instead of reports")


def run(arguments: argparse.Namespace) -> int:
    """Send reports to CloudWatch, or estimate the cost; return the exit code."""
    from runvitals.cli import cloudwatch_reports  # 0.05 s, which `runvitals --help` would take too

    return cloudwatch_reports.run(arguments)
