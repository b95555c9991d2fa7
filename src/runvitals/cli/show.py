"""`runvitals show RUN`: show a run's facts, events and statistics."""

from __future__ import annotations

import argparse
import json
import shlex
from dataclasses import asdict
from typing import Any

from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import ending, inert, moment, number, table
from runvitals.model.durations import duration_text
from runvitals.model.failure import Failure
from runvitals.model.host import Host
from runvitals.model.run import Run
from runvitals.model.run_json import finite, run_as_dict
from runvitals.monitoring.collectors.sources import FAULTS, RARE, is_partial
from runvitals.readers.journals.arrays import numpy_or_none
from runvitals.readers.journals.run_handle import OpenRun, open_run
from runvitals.readers.journals.statistics import Statistics
from runvitals.tools.doctor.sources import SOURCES_OF

RUN_HELP = "run id, a unique prefix of it, the run's name, or `latest`"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals show`."""
    parser.add_argument("id", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print facts, events and statistics of a run; return 0."""
    opened = open_run(arguments.id, directory(arguments))
    statistics = opened.statistics()
    if arguments.json:
        record = {**run_as_dict(opened.facts), "statistics": [asdict(statistic) for statistic in statistics]}
        failure = opened.failure()
        record["failure"] = None if failure is None else asdict(failure)
        if numpy_or_none() is not None:
            record["verdict"] = opened.findings().to_json()["verdict"]
        print(json.dumps(finite(record), indent=1, allow_nan=False))
        return 0
    print(table([*_facts(opened.facts), *_verdict(opened)]))
    if (failure := opened.failure()) is not None:
        print("\n" + "\n".join(_why(failure)))
    for heading, lines in _sections(opened.facts):
        print(f"\n{heading}")
        print("\n".join(f"  {line}" for line in lines))
    if statistics:
        print()
        print(_statistics(statistics))
    return 0


def _verdict(run: OpenRun) -> list[list[str]]:
    """Return the row of the verdict; none without NumPy, which the rules need."""
    if numpy_or_none() is None:
        return []
    findings = run.findings()
    more = f" (see `runvitals findings {run.id}`)" if findings.findings else ""
    return [["verdict", inert(findings.text + more)]]


def _why(failure: Failure) -> list[str]:
    """Return why the run failed, and what it printed last."""
    rank = "" if failure.rank is None else f" (first: rank {failure.rank} on {failure.host})"
    printed = [f"  {inert(line.text)}" for line in failure.lines]
    hint = [f"  {failure.hint}"] if failure.hint else []
    return [f"why it failed: {inert(failure.title)}{inert(rank)}", *printed, *hint]


def _facts(run: Run) -> list[list[str]]:
    facts = [
        ["run", inert(run.id)],
        ["name", inert(run.name) if run.name != run.id else ""],
        ["project", inert(run.project)],
        ["state", ending(run.ending)],
        ["out of memory", {True: "yes", False: "no", None: ""}[run.out_of_memory]],
        ["deleted", "" if run.deleted_ms is None else f"in the trash since {moment(run.deleted_ms)} UTC"],
        ["started", f"{moment(run.started_ms)} UTC"],
        ["duration", duration_text(run.duration_ms)],
        ["hosts", inert(_hosts(run.hosts))],
        ["limits", inert("; ".join(_limits(run)))],
        ["command", inert(shlex.join(run.command))],
        ["tags", inert(", ".join(run.tags))],
        ["notes", inert(run.notes)],
        ["lost records", str(run.lost_records or "")],
    ]
    return [fact for fact in facts if fact[1]]


def _hosts(hosts: list[Host]) -> str:
    if len(hosts) == 1:
        return hosts[0].name
    return ", ".join(f"{host.name} ({ending(host.ending)})" for host in hosts)


def _limits(run: Run) -> list[str]:
    """Return the limits of the cgroups and the folders that set them: `8 GiB of memory, set by …`."""
    limits = []
    for host, machine in run.machines.items():
        where = f" on {host}" if len(run.machines) > 1 else ""
        for fact, field, unit, what in _LIMITS:
            limit = machine.get(fact)
            value = limit.get(field) if isinstance(limit, dict) else None
            if isinstance(limit, dict) and isinstance(value, (int, float)):
                limits.append(f"{number(value / unit)} {what}{where}, set by {limit.get('set_by')}")
    return limits


# Fact about a machine, its field, the unit of that field, what it limits.
_LIMITS = (
    ("cgroup_memory_limit", "bytes", 2**30, "GiB of memory"),
    ("cgroup_memory_high", "bytes", 2**30, "GiB of memory before processes are slowed down"),
    ("cgroup_cpu_limit", "cpus", 1, "CPUs"),
)


def _sections(run: Run) -> list[tuple[str, list[str]]]:
    sections = [
        ("config", [inert(f"{key} = {_value(value)}") for key, value in run.config.items()]),
        ("summary", [inert(f"{key} = {_value(value)}") for key, value in run.summary.items()]),
        ("events", [inert(f"{moment(e.time_ms)}  {e.level}  {e.name}: {e.text}") for e in run.events]),
        ("not measured", _not_measured(run)),
        ("problems in the journal", [inert(problem) for problem in run.problems]),
    ]
    return [(heading, lines) for heading, lines in sections if lines]


def _value(value: Any) -> str:
    """Return a text as it is, anything else as JSON: `true`, as the page shows it, rather than `True`."""
    return value if isinstance(value, str) else json.dumps(finite(value), ensure_ascii=False)


def _not_measured(run: Run) -> list[str]:
    """Return the failing, partial and unexpectedly absent sources with reasons, and other absent names."""
    lines = []
    for host, sources in run.sources.items():
        states = {name: source for name, source in sources.items() if isinstance(source, dict)}
        ours = _of_cards(run.machines.get(host, {}))
        absent = [
            name
            for name, source in states.items()
            if source.get("state") == "absent" and not _is_wanted(name, source.get("reason") or "", ours)
        ]
        lines += [
            inert(f"{name} on {host}: {_state(source)}")
            for name, source in states.items()
            if name not in absent
            and source.get("state") is not None
            and (source.get("state") != "on" or source.get("reason"))
        ]
        if absent:
            lines.append(inert(f"absent on {host}: {', '.join(absent)} (see `runvitals doctor` there)"))
    return lines


def _of_cards(machine: dict[str, Any]) -> set[str]:
    """Return the sources that can read the accelerators on the machine's PCI bus."""
    cards = machine.get("accelerators")
    vendors = (
        [card.get("vendor") for card in cards if isinstance(card, dict)] if isinstance(cards, list) else []
    )
    return {source for vendor in vendors if isinstance(vendor, str) for source in SOURCES_OF.get(vendor, ())}


def _is_wanted(name: str, reason: str, ours: set[str]) -> bool:
    """Return whether the reason of an absent source is worth a line."""
    return bool(reason) and (name not in RARE or name in ours or reason.startswith(FAULTS))


def _state(source: dict[str, str]) -> str:
    """Return the state of a source with its reason: `partial, dram: only root may read this`."""
    state = "partial" if source["state"] == "on" and is_partial(source) else source["state"]
    return f"{state}, {source['reason']}" if source.get("reason") else state


def _statistics(statistics: list[Statistics]) -> str:
    several = len({row.host for row in statistics}) > 1
    heading = ["METRIC", "UNIT", "N", "MIN", "MEAN", "P95", "MAX", "LAST", "TOTAL"]
    rows = [
        [
            inert(f"{row.key} on {row.host}" if several else row.key),
            inert(row.unit),
            str(row.n),
            *(
                number(value)
                for value in (
                    row.min,
                    row.mean,
                    row.p95,
                    row.max,
                    row.last,
                    row.total,
                )
            ),
        ]
        for row in statistics
    ]
    return table([heading, *rows], right=frozenset(range(2, 9)))
