"""Sends the reports of neuron-monitor to CloudWatch, or estimates what that, or a run, would cost."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from collections.abc import Iterator

from runvitals.cli import WrongUsage
from runvitals.cli.data_folder import directory
from runvitals.cli.formatting import inert, number, table
from runvitals.relay.destinations.cloudwatch import prices
from runvitals.relay.destinations.cloudwatch.client import MISSING, CloudWatchClient
from runvitals.relay.destinations.cloudwatch.dimensions import PER_MACHINE, parse
from runvitals.relay.destinations.cloudwatch.dry_run import add_reports, add_run
from runvitals.relay.destinations.cloudwatch.estimate import Estimate
from runvitals.relay.destinations.cloudwatch.limits import check_namespace
from runvitals.relay.destinations.cloudwatch.metric_selection import NEURON_STANDARD, MetricGlobs
from runvitals.relay.destinations.cloudwatch.pipe import EmfSink, Pipe, PutMetricDataSink, Sink


def run(arguments: argparse.Namespace) -> int:
    """Send the reports on stdin, or print what would be sent; return the exit code."""
    check_namespace(arguments.namespace)
    if arguments.run and not arguments.dry_run:
        raise WrongUsage(
            "--run requires --dry-run; to send a run's metrics, add the destination "
            "cloudwatch:REGION/NAMESPACE?include=… to the setting `destinations`"
        )
    if not arguments.run and sys.stdin.isatty():
        raise WrongUsage("expected reports on stdin: neuron-monitor | runvitals cloudwatch --region REGION")
    return _dry_run(arguments) if arguments.dry_run else _send(arguments)


def _send(arguments: argparse.Namespace) -> int:
    dimensions = parse(arguments.dimension)
    selection = MetricGlobs(arguments.include or NEURON_STANDARD, arguments.exclude)
    # On SIGTERM, send what is pending, as at the end of the input.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _sink(arguments) as sink:
            pipe = Pipe(0, selection, dimensions, sink, arguments.resolution, arguments.every)
            return 0 if pipe.run() else 1
    except ModuleNotFoundError as error:
        if error.name not in ("boto3", "botocore"):
            raise
        print(f"runvitals: {MISSING}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def _sink(arguments: argparse.Namespace) -> Iterator[Sink]:
    if arguments.emf is None:
        yield PutMetricDataSink(CloudWatchClient(arguments.namespace, arguments.region))
    elif arguments.emf == "-":
        yield EmfSink(arguments.namespace, sys.stdout)
    else:
        with open(arguments.emf, "a", encoding="utf-8") as file:
            yield EmfSink(arguments.namespace, file)


def _dry_run(arguments: argparse.Namespace) -> int:
    dimensions = parse(arguments.dimension)
    estimate = Estimate(
        instances=arguments.instances,
        per_instance=bool(PER_MACHINE & dimensions.keys()),
        every_s=arguments.every,
        resolution_s=arguments.resolution,
        dimensions=dimensions,
    )
    standard = () if arguments.run else NEURON_STANDARD
    selection = MetricGlobs(arguments.include or standard, arguments.exclude)
    if arguments.run:
        add_run(estimate, selection, arguments.run, directory(arguments))
        read = [f"run {arguments.run}"]
    else:
        reader = add_reports(estimate, selection, 0)
        read = [f"{reader.reports} reports", *reader.problems()]
    print(f"Nothing is sent. Read: {inert('; '.join([*read, *selection.problems()]))}\n")
    if not estimate.sent and not estimate.left_out:
        print("runvitals: no metrics found", file=sys.stderr)
        return 1
    print(_metrics(estimate))
    print(f"\n{_groups(estimate)}\n")
    emf = arguments.emf is not None
    print("\n".join(_total_lines(estimate, arguments.namespace, emf)))
    return 0


def _metrics(estimate: Estimate) -> str:
    rows = [
        [inert(series.name), series.unit, inert(reading.field), number(reading.value)]
        for series, reading in estimate.sent.items()
    ]
    return table([["METRIC", "UNIT", "FROM", "LAST"], *rows], right=frozenset({3}))


def _groups(estimate: Estimate) -> str:
    rows = [
        [
            inert(group),
            str(sent),
            _usd(cost),
            str(left_out) if left_out else "",
            _usd(saved) if left_out else "",
        ]
        for group, sent, cost, left_out, saved in estimate.groups()
    ]
    left_out = len(estimate.left_out)
    saved = estimate.metrics_usd(len(estimate.sent) + left_out) - estimate.metrics_usd()
    total = ["all", str(len(estimate.sent)), _usd(estimate.metrics_usd()), str(left_out), _usd(saved)]
    heading = ["GROUP", "SENT", "USD/MONTH", "LEFT OUT", "SAVES USD/MONTH"]
    return table([heading, *rows, total], right=frozenset(range(1, 5)))


def _total_lines(estimate: Estimate, namespace: str, emf: bool) -> Iterator[str]:
    count, sets = len(estimate.sent), estimate.metric_sets
    dimensions = ", ".join(f"{k}={'…' if v is None else v}" for k, v in estimate.dimensions.items())
    yield f"Namespace {namespace}, dimensions: {dimensions or 'none'}"
    times = f" × {sets} instances" if sets > 1 else ""
    yield f"Metrics   {count}{times}: {_usd(estimate.metrics_usd())} USD a month"
    if emf:
        yield f"Log       about {_usd(estimate.logs_usd(namespace))} USD a month for its bytes; no requests"
        total = estimate.metrics_usd() + estimate.logs_usd(namespace)
    else:
        per_hour = estimate.requests_per_hour() * estimate.instances
        yield f"Requests  {per_hour:g} an hour: {_usd(estimate.requests_usd())} USD a month" + (
            f" ({_usd(estimate.unbatched_requests_usd())} with a request per report)"
        )
        total = estimate.total_usd()
    machines = f" for {estimate.instances} instances" if estimate.instances > 1 else " for 1 instance"
    yield f"Total     {_usd(total)} USD a month{machines}"
    if estimate.instances > 1 and not estimate.per_instance:
        apart = _usd(prices.metrics_usd(count * estimate.instances))
        yield (
            "All instances write to the same metrics, because no dimension distinguishes them. With "
            f"--dimension InstanceId the metrics cost {apart} USD a month."
        )
    yield (
        f"List prices of {prices.REGION} as of {prices.AS_OF}, for months of 30 days of continuous sending. "
        f"The free tier ({prices.FREE_METRICS} metrics and {prices.FREE_REQUESTS:,} requests) "
        "is not subtracted."
    )


def _usd(amount: float) -> str:
    return f"{amount:,.2f}"
