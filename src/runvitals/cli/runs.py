"""`runvitals runs`: list the runs in the data folder, all or those that match a filter."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import closing

from runvitals.base.terminal_text import cut
from runvitals.cli.argument_types import positive_integer
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import ending, inert, moment, number, table
from runvitals.model.durations import duration_text
from runvitals.model.filter import Filter
from runvitals.model.filter_text import parse
from runvitals.model.run import Run
from runvitals.model.run_json import finite, run_as_dict
from runvitals.model.run_sort import RunSort
from runvitals.model.run_verdict import FINDING_FIELDS
from runvitals.model.system_statistics import is_statistic
from runvitals.readers.journals.run_filter import SystemStatistics, matching, sort_runs
from runvitals.readers.journals.run_handle import now_ms
from runvitals.readers.journals.runs import RunList
from runvitals.sdk.data_folder import runs_kept_elsewhere

_SUMMARY_LETTERS = 50
_CELL_COLUMNS = 48
_OF_SERVER = 100
_PAGE_RUNS = 1000
_TIMEOUT_S = 30.0


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals runs`."""
    parser.add_argument(
        "filter",
        nargs="*",
        help="terms that all hold: state:failed config.lr>=1e-3 gpu.util<20; write -- before a filter that "
        "begins with -",
    )
    parser.add_argument("--project", help="only runs of this project")
    parser.add_argument(
        "--sort",
        type=_order,
        default=RunSort(),
        metavar="ORDER",
        help="such as -summary.acc,name or duration_ms; `-` means highest first; write --sort=-…; "
        "default: -started_ms",
    )
    parser.add_argument(
        "--limit", type=positive_integer, metavar="N", help=f"only the first N; of a server: {_OF_SERVER}"
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    parser.add_argument(
        "--server", metavar="URL", help="runs of this server, with the stored key and its rights"
    )
    add_dir(parser)


def _order(text: str) -> RunSort:
    try:
        return RunSort.parse(text, descending=False)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(arguments: argparse.Namespace) -> int:
    """Print the runs that match the filter; return 0."""
    if arguments.server is not None:
        _print_runs_of_server(arguments)
        return 0
    runs = RunList(directory(arguments))
    try:
        _print_runs(runs, arguments)
    finally:  # also if the data folder cannot be read
        if not arguments.dir and not arguments.json:
            _mention_runs_kept_elsewhere(runs.directory)
    return 0


def _print_runs(runs: RunList, arguments: argparse.Namespace) -> None:
    filter_ = Filter(project=arguments.project, terms=parse(" ".join(arguments.filter)))
    needs_findings = filter_.needs_findings or any(part.by in FINDING_FIELDS for part in arguments.sort.parts)
    listed = _judged(runs.runs(now_ms()), needs_findings, runs.directory)
    statistics = _statistics(listed, filter_, arguments.sort, runs.directory)
    matches = matching(listed, filter_, statistics)
    if arguments.sort != RunSort():
        matches = [run for _, run in sort_runs(matches, arguments.sort, statistics)]
    left_out = len(matches) - (arguments.limit or len(matches))
    of_project = f" of project {inert(arguments.project)!r}" if arguments.project else ""
    if listed and arguments.filter:
        nothing = f"no runs{of_project} in {inert(runs.directory)} match the filter"
    else:
        nothing = f"no runs{of_project} in {inert(runs.directory)}; start one with `runvitals run -- CMD`"
    _print_table(matches[: arguments.limit], left_out, nothing, arguments)


def _print_runs_of_server(arguments: argparse.Namespace) -> None:
    from runvitals.base import stored_keys
    from runvitals.readers.servers import responses
    from runvitals.readers.servers.connection import ApiConnection

    limit = arguments.limit or _OF_SERVER
    about = [("filter", " ".join(arguments.filter) or None), ("project", arguments.project)]
    about.append(("sort", arguments.sort.text))
    matches: list[Run] = []
    key = stored_keys.token(arguments.server, os.environ)
    with closing(ApiConnection(arguments.server, key, _TIMEOUT_S)) as server:
        after = None
        while len(matches) < limit:
            at_once = min(limit - len(matches), _PAGE_RUNS)
            page = server.get("/runs", [*about, ("limit", at_once), ("after", after)])
            matches += map(responses.listed_run, page["runs"])
            after = page["next"]
            if after is None:
                break
    nothing = f"no runs of {inert(arguments.server)} match, among those that you may read"
    _print_table(matches, page["total"] - len(matches), nothing, arguments)


def _print_table(matches: list[Run], left_out: int, nothing: str, arguments: argparse.Namespace) -> None:
    """Print runs, or what to say if there are none."""
    if arguments.json:
        print(json.dumps([finite(run_as_dict(run)) for run in matches], indent=1, allow_nan=False))
    elif matches:
        heading = [
            "RUN",
            "NAME",
            "PROJECT",
            "STATE",
            "STARTED (UTC)",
            "DURATION",
            "HOSTS",
            "CPU %",
            "MEMORY %",
            "SUMMARY",
            "TAGS",
        ]
        print(table([heading, *(_row(run) for run in matches)], right=frozenset({5, 7, 8})))
        for run in matches:
            if run.problems:
                print(f"{inert(run.id)}: {inert(run.problems[0])}", file=sys.stderr)
    else:
        print(nothing)
    if left_out > 0:
        print(f"{left_out:,} more: use --limit", file=sys.stderr)


def _mention_runs_kept_elsewhere(folder: str) -> None:
    elsewhere = runs_kept_elsewhere(folder)
    if elsewhere is not None:
        print(
            f"runs that were recorded while the data folder was not writable: runvitals runs --dir"
            f" {shlex.quote(elsewhere)}",
            file=sys.stderr,
        )


def _statistics(runs: Sequence[Run], filter_: Filter, order: RunSort, folder: str) -> SystemStatistics:
    """Return the system statistics of the runs, if filter or order need them, for which journals are read.

    Raises:
        ModuleNotFoundError: what reads them is not installed.
    """
    if not any(map(is_statistic, (*filter_.fields, *(part.by for part in order.parts)))):
        return {}
    from runvitals.server.library.local.journal_summaries import JournalSummaries

    summaries = JournalSummaries(folder)
    while summaries.read(runs, (), now_ms()):
        pass
    return summaries.statistics()


def _judged(runs: list[Run], needs_findings: bool, folder: str) -> list[Run]:
    """Return the runs with their verdicts, if they are needed: their journals are read completely.

    Raises:
        ModuleNotFoundError: what judges them is not installed.
    """
    if not needs_findings:
        return runs
    from runvitals.readers.journals.verdicts import JournalVerdicts

    verdicts = JournalVerdicts(folder)
    while verdicts.read(runs, now_ms()):
        pass
    return verdicts.add_to(runs)


def _row(run: Run) -> list[str]:
    return [
        inert(run.id),
        _cell("" if run.name == run.id else run.name),
        _cell(run.project),
        ending(run.ending),
        moment(run.started_ms),
        duration_text(run.duration_ms),
        _cell(_hosts(run)),
        _last(run, "cpu"),
        _last(run, "memory_percent"),
        _summary(run),
        inert(", ".join(run.tags)),
    ]


def _cell(text: str) -> str:
    """Return a text that leaves room for the other columns; `--json` has all of it."""
    return cut(inert(text), _CELL_COLUMNS)


def _summary(run: Run) -> str:
    """Return the first summary entries that fit."""
    summary = ""
    for key, value in run.summary.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        text = inert(f"{key}={value:.4g}" if is_number else f"{key}={value}")
        if len(summary) + len(text) > _SUMMARY_LETTERS:
            break
        summary += f"  {text}" if summary else text
    return summary


def _hosts(run: Run) -> str:
    names = [host.name for host in run.hosts]
    return names[0] if len(names) == 1 else f"{len(names)} hosts"


def _last(run: Run, key: str) -> str:
    """Return the last value, the maximum over all hosts."""
    values = [values[key] for values in run.last.values() if key in values]
    return number(max(values)) if values else "-"
