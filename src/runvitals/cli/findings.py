"""`runvitals findings`: what is wrong with a run, or with the runs of a project."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from runvitals.cli import WrongUsage
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert, moment, number, table
from runvitals.cli.show import RUN_HELP
from runvitals.findings.remedies import remedies
from runvitals.model.durations import DAY_MS, HOUR_MS, MINUTE_MS
from runvitals.readers.journals.run_handle import open_run
from runvitals.readers.journals.runs import RunList

if TYPE_CHECKING:
    from runvitals.findings.finding import Finding, Findings
    from runvitals.readers.servers.lost_hours import LostHours, PlaceLoss, RunLoss

_UNITS_MS = {"m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_WIDTH = 100
_SHOWN = 5


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals findings`."""
    parser.description = (
        "Judges a run by rules: what is wrong, since when, which hosts and devices, what it "
        "costs, and what to do. Without a run: the device-hours that the runs of the data folder, or of a "
        "server, lost by cause; no hour counts twice."
    )
    parser.add_argument("id", metavar="RUN", nargs="?", help=RUN_HELP)
    parser.add_argument("--project", help="without RUN: only runs of this project")
    parser.add_argument(
        "--since", default="7d", type=_age_ms, help="without RUN: such as 12h, 7d; default: 7d"
    )
    parser.add_argument(
        "--price", type=_price, metavar="AMOUNT", help="of a device-hour, to tell costs in money"
    )
    parser.add_argument("--server", metavar="URL", help="without RUN: of the runs of this server")
    parser.add_argument("--team", help="with --server: only runs of this team or user")
    parser.add_argument(
        "--organisation",
        action="store_true",
        help="with --server: of all teams, also of runs that you may not read; for those who may see the "
        "usage of the organisation",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    add_dir(parser)


def _age_ms(text: str) -> int:
    match = re.fullmatch(r"([1-9]\d{0,5})([mhdw])", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: expected such as 30m, 12h, 7d or 4w")
    return int(match[1]) * _UNITS_MS[match[2]]


def _price(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is no price: expected a number of 0 or more")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Print the findings about a run, or what the runs of the data folder lost by cause; return 0."""
    if arguments.id is not None:
        findings = open_run(arguments.id, directory(arguments)).findings(arguments.price)
        print(_json(findings.to_json()) if arguments.json else _text(findings))
        return 0
    if arguments.server is not None:
        return _of_server(arguments)
    if arguments.team is not None:
        raise WrongUsage("--team needs --server: the data folder knows no teams")
    if arguments.organisation:
        raise WrongUsage("--organisation needs --server: the data folder knows no organisation")
    judged = list(_runs(arguments))
    if arguments.json:
        print(
            _json(
                {
                    "causes": _causes(judged),
                    "runs": [{"run": run_id, **each.to_json()} for run_id, each in judged],
                }
            )
        )
    elif not judged:
        print("no runs")
    else:
        print(_overview(judged))
    return 0


def _runs(arguments: argparse.Namespace) -> Iterator[tuple[str, Findings]]:
    now_ms = time.time_ns() // 1_000_000
    for facts in RunList(directory(arguments)).runs(now_ms):
        if arguments.project not in (None, facts.project):
            continue
        if facts.started_ms + facts.duration_ms < now_ms - arguments.since:
            continue
        yield facts.id, open_run(facts.id, directory(arguments)).findings(arguments.price)


def _of_server(arguments: argparse.Namespace) -> int:
    """Print what the runs of a server lost by cause, as the server has judged them; return 0."""
    from runvitals.readers.servers.client import Client

    if arguments.organisation and arguments.project is not None:
        raise WrongUsage("--organisation is of all projects: leave out --project")
    chosen: dict[str, Any] = {
        "entity": arguments.team,
        "since_ms": max(time.time_ns() // 1_000_000 - arguments.since, 0),
        "price_per_device_hour": arguments.price,
    }
    losses: Callable[..., Iterator[RunLoss | PlaceLoss]]
    with Client(arguments.server) as client:
        if arguments.organisation:
            plural, losses = "projects", partial(client.place_losses, "project", organisation=True, **chosen)
        else:
            chosen["project"] = arguments.project
            plural, losses = "runs", partial(client.run_losses, **chosen)
        lost = client.lost_hours(**chosen, organisation=arguments.organisation)
        if arguments.json:
            print(_json({**asdict(lost), plural: [asdict(loss) for loss in losses()]}))
            return 0
        most = {cause.id: _most(losses(cause=cause.id)) for cause in lost.causes}
    _print_lost(lost, most)
    return 0


def _print_lost(lost: LostHours, most: Mapping[str, str]) -> None:
    """Print what was lost by cause, with what lost most."""
    with_money = any(cause.money is not None for cause in lost.causes)
    rows = [["cause", "device-hours", *(["money"] if with_money else []), "runs", "most of it"]]
    rows += [
        [
            inert(cause.id),
            number(cause.device_hours),
            *([_money(cause.money, lost.currency)] if with_money else []),
            str(cause.runs),
            most[cause.id],
        ]
        for cause in lost.causes
    ]
    waiting = f", {lost.waiting_runs} not judged yet" if lost.waiting_runs else ""
    judged = f"{lost.judged_runs} runs judged{waiting}, {number(lost.device_hours)} device-hours lost"
    print((table(rows) + "\n\n" if lost.causes else "") + judged)


def _most(losses: Iterator[RunLoss | PlaceLoss]) -> str:
    return ", ".join(inert(loss.label) for loss in islice(losses, _SHOWN))


def _money(amount: float | None, currency: str | None) -> str:
    return "-" if amount is None else f"{amount:,.2f} {inert(currency or '')}".strip()


def _causes(judged: list[tuple[str, Findings]]) -> dict[str, dict[str, Any]]:
    """Sum the device-hours and runs by cause, most first; no hour counts twice."""
    from runvitals.findings.lost_hours import lost_hours

    now_ms = time.time_ns() // 1_000_000
    causes: dict[str, dict[str, Any]] = {}
    for run_id, findings in judged:
        hours = lost_hours(findings.findings, now_ms)
        for each, lost in zip(findings.findings, hours, strict=True):
            if lost <= 0:
                continue
            cause = causes.setdefault(each.id, {"device_hours": 0.0, "runs": []})
            cause["device_hours"] = round(cause["device_hours"] + lost, 3)
            if run_id not in cause["runs"]:
                cause["runs"].append(run_id)
    return dict(sorted(causes.items(), key=lambda item: -item[1]["device_hours"]))


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False)


def _text(findings: Findings) -> str:
    lines = [inert(findings.text)]
    for finding in findings.findings:
        lines += ["", *_finding(finding)]
    if findings.fine:
        lines += ["", *_wrapped("fine: " + ", ".join(findings.fine))]
    if findings.undecided:
        lines += ["", "could not be decided:"]
        for undecided in findings.undecided:
            needs = f" (needs {', '.join(undecided.needs)})" if undecided.needs else ""
            lines += _wrapped(f"{undecided.id}: {undecided.why}{needs}", "  ")
    missing = [key for undecided in findings.undecided for key in undecided.needs]
    if helpful := remedies(missing):
        lines += ["", "to have what they need:"]
        for remedy in helpful:
            lines += _wrapped(remedy, "  ")
    return "\n".join(lines)


def _finding(finding: Finding) -> list[str]:
    until = f"to {moment(finding.to_ms)} UTC" if finding.to_ms is not None else "and goes on"
    lines = _wrapped(f"{finding.severity}: {finding.id} ({finding.confidence})")
    lines += _wrapped(finding.text, "  ")
    lines += _wrapped(f"from {moment(finding.from_ms)} {until}, {100 * finding.share:.0f} % of the run", "  ")
    if finding.device_hours > 0:
        money = "" if finding.money is None else f", {finding.money:,.2f} in money"
        lines += _wrapped(f"cost: {number(finding.device_hours)} device-hours{money}", "  ")
    for evidence in finding.evidence:
        normal = "" if evidence.normal is None else f", normally {number(evidence.normal)}"
        where = f" on {evidence.host}" if evidence.host else ""
        lines += _wrapped(f"{evidence.key}{where}: {number(evidence.value)} {evidence.unit}{normal}", "  ")
    if finding.severity != "info":
        lines += _wrapped(f"what to do: {finding.advice}", "  ")
    return lines


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(inert(text), _WIDTH, initial_indent=indent, subsequent_indent=indent + "  ") or [""]


def _overview(judged: list[tuple[str, Findings]]) -> str:
    rows = [["cause", "device-hours", "runs"]]
    rows += [
        [cause, number(about["device_hours"]), ", ".join(map(inert, about["runs"][:_SHOWN]))]
        for cause, about in _causes(judged).items()
    ]
    healthy = sum(findings.verdict == "healthy" for _, findings in judged)
    unknown = sum(findings.verdict == "unknown" for _, findings in judged)
    tail = f"{len(judged)} runs, {healthy} of them healthy" + (
        f", {unknown} could not be judged" if unknown else ""
    )
    return (table(rows) + "\n\n" if len(rows) > 1 else "") + tail
