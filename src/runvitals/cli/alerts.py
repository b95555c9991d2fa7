"""`runvitals alerts`: the alert rules of a team or user on a server."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from runvitals.cli.argument_types import integer_between, number_between
from runvitals.cli.formatting import inert, table
from runvitals.cli.team_definitions import (
    add_listings,
    add_server,
    connected,
    delete_others,
    every,
    field_errors,
    read_definitions,
    send_definition,
)
from runvitals.model.account_names import entity_name

if TYPE_CHECKING:
    from runvitals.readers.servers.connection import ApiConnection

_HOUR_MS: Final = 3_600_000
_MAX_HOURS: Final = 24 * 366


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals alerts`."""
    parser.description = __doc__
    add_server(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_listings(
        actions,
        (
            ("list", "the rules, and which of them fire"),
            ("history", "when rules fired, and who was notified"),
        ),
    )
    check = actions.add_parser("check", help="how often the rules of a file would have fired")
    check.add_argument("team", metavar="TEAM")
    check.add_argument("file", metavar="FILE", help="TOML, YAML or JSON, with a list of rules named `rule`")
    check.add_argument(
        "--days", type=integer_between(1, 90), default=7, help="how many past days; default: %(default)s"
    )
    apply = actions.add_parser("apply", help="make the rules of a server those of a file")
    apply.add_argument("team", metavar="TEAM")
    apply.add_argument("file", metavar="FILE")
    apply.add_argument("--prune", action="store_true", help="delete rules that the file does not have")
    test = actions.add_parser("test", help="send yourself what a rule would send")
    mute = actions.add_parser("mute", help="notify nobody for some hours")
    for command in (test, mute):
        command.add_argument("team", metavar="TEAM")
        command.add_argument("name", metavar="RULE")
    mute.add_argument(
        "--hours", type=number_between(0, _MAX_HOURS), default=8, help="0: no longer; default: %(default)g"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run an action on the alert rules of a team; return 0."""
    with connected(arguments) as server:
        return _ACTIONS[arguments.action](server, _path(arguments.team), arguments)


def _path(team: str) -> str:
    return f"/entities/{entity_name(team)}/alert-rules"


def _all(server: ApiConnection, path: str) -> list[dict[str, Any]]:
    return every(server.get, path, "rules")


def _list(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    rules = _all(server, path)
    if arguments.json:
        print(json.dumps(rules, indent=1))
        return 0
    firing = server.get(f"{path}/history", [("limit", 200), ("firing", "true")])["firings"]
    counts: dict[str, int] = {}
    for entry in firing:
        counts[entry["rule"]] = counts.get(entry["rule"], 0) + 1
    if not rules:
        print("there are no rules; `runvitals alerts apply` adds those of a file")
        return 0
    rows = [["RULE", "SEVERITY", "STATE", "FIRES FOR"]]
    for rule in rules:
        state = "muted" if (rule["muted_until_ms"] or 0) > time.time() * 1000 else "on"
        state_text = state if rule["enabled"] else "off"
        severity = str(rule["rule"].get("severity", "warning"))
        rows.append([inert(rule["name"]), severity, state_text, str(counts.get(rule["name"], 0))])
    print(table(rows))
    return 0


def _history(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    firings = server.get(f"{path}/history", [("limit", 100)])["firings"]
    if arguments.json:
        print(json.dumps(firings, indent=1))
        return 0
    rows = [["FIRED", "RULE", "RUN", "METRIC", "HOST", "UNTIL", "NOTIFIED"]]
    for firing in firings:
        until = "still" if firing["ended_ms"] is None else _when(firing["ended_ms"])
        run = inert(f"{firing['project']}/{firing['run']}")
        about = [inert(firing["rule"]), run, inert(firing["key"]), inert(firing["host"])]
        rows.append([_when(firing["fired_ms"]), *about, until, firing["notified"] or "–"])
    print(table(rows))
    return 0


def _check(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    for rule in _read(arguments.file):
        body = {"rule": rule, "days": arguments.days}
        result = send_definition(server, "POST", f"{path}/dry-run", body, _where(arguments.file, rule))
        times = "once" if result["times"] == 1 else f"{result['times']} times"
        print(f"{inert(rule['name'])}: would have fired {times} in {result['runs']} runs")
    return 0


def _apply(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    in_file = {rule["name"]: rule for rule in _read(arguments.file)}
    on_server = {rule["name"]: rule for rule in _all(server, path)}
    for name, rule in in_file.items():
        enabled = rule.get("enabled", True)
        before, body = on_server.get(name), {"rule": rule, "enabled": enabled}
        if before is None:
            send_definition(server, "POST", path, body, _where(arguments.file, rule))
            print(f"added {inert(name)}")
        elif before["rule"] != rule or before["enabled"] != enabled:
            send_definition(server, "PATCH", f"{path}/{before['id']}", body, _where(arguments.file, rule))
            print(f"changed {inert(name)}")
    if arguments.prune:
        delete_others(server, path, on_server, in_file)
    return 0


def _test(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    server.send("POST", f"{path}/{_id_of(server, path, arguments.name)}/test", {})
    print("a test is on its way to you")
    return 0


def _mute(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    until_ms = int(time.time() * 1000 + arguments.hours * _HOUR_MS) if arguments.hours > 0 else None
    server.send("PATCH", f"{path}/{_id_of(server, path, arguments.name)}", {"muted_until_ms": until_ms})
    state = "no longer muted" if until_ms is None else f"muted until {_when(until_ms)}"
    print(f"{inert(arguments.name)} is {state}")
    return 0


def _read(path: str) -> list[dict[str, Any]]:
    """Return the rules of a file, all checked, so that a mistake in one changes nothing.

    Raises:
        ValueError: the file or a rule is invalid; all mistakes are named.
    """
    from runvitals.server.alerts.rules import InvalidRule, rule

    definitions, wrong = read_definitions(path, "rule"), []
    for definition in definitions:
        try:
            rule(definition)
        except InvalidRule as error:
            wrong.append(f"rule {inert(definition['name'])!r}: {field_errors(error.fields)}")
    if wrong:
        raise ValueError(f"{inert(path)}: {'; '.join(wrong)}")
    return definitions


def _where(path: str, rule: Mapping[str, Any]) -> str:
    return f"{inert(path)}: rule {inert(rule['name'])!r}"


def _id_of(server: ApiConnection, path: str, name: str) -> int:
    """Return the id of the rule with a name, or raise ValueError."""
    for rule in _all(server, path):
        if rule["name"] == name:
            return int(rule["id"])
    raise ValueError(f"there is no rule {name!r}; `runvitals alerts list` shows all")


def _when(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_ms / 1000))


_ACTIONS: Final[dict[str, Callable[[ApiConnection, str, argparse.Namespace], int]]] = {
    "list": _list,
    "history": _history,
    "check": _check,
    "apply": _apply,
    "test": _test,
    "mute": _mute,
}
