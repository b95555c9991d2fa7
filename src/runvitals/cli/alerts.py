"""`runvitals alerts`: the alert rules of a team or user on a server."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from runvitals.cli.formatting import inert, table
from runvitals.model.account_names import entity_name

_HOUR_MS: Final = 3_600_000


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "alerts", help="list, check, apply, test and mute the alert rules of a team", description=__doc__
    )
    parser.add_argument("--server", metavar="URL", help="default: the only server with a stored key")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("list", "the rules, and which of them fire"),
        ("history", "when rules fired, and who was notified"),
    ):
        listed = actions.add_parser(name, help=text)
        listed.add_argument("entity", metavar="TEAM")
        listed.add_argument("--json", action="store_true", help="print JSON, for scripts")
    check = actions.add_parser("check", help="how often the rules of a file would have fired")
    check.add_argument("entity", metavar="TEAM")
    check.add_argument("file", metavar="FILE", help="TOML, YAML or JSON, with a list of rules named `rule`")
    check.add_argument("--days", type=int, default=7, help="how many past days; default: %(default)s")
    apply = actions.add_parser("apply", help="make the rules of a server those of a file")
    apply.add_argument("entity", metavar="TEAM")
    apply.add_argument("file", metavar="FILE")
    apply.add_argument("--prune", action="store_true", help="delete rules that the file does not have")
    test = actions.add_parser("test", help="send yourself what a rule would send")
    mute = actions.add_parser("mute", help="notify nobody for some hours")
    for named in (test, mute):
        named.add_argument("entity", metavar="TEAM")
        named.add_argument("name", metavar="RULE")
    mute.add_argument("--hours", type=float, default=8, help="0: no longer; default: %(default)g")


def run(arguments: argparse.Namespace) -> int:
    from runvitals.client.connection import ApiConnection
    from runvitals.relay.destinations.runvitals import login

    url = login.known_server(arguments.server, os.environ)
    server = ApiConnection(url, login.token(url, os.environ), 60)
    try:
        return int(_ACTIONS[arguments.action](server, _path(arguments.entity), arguments))
    finally:
        server.close()


def read_definitions(path: str, kind: str) -> list[dict[str, Any]]:
    """The rules of a file, or its automations.

    Args:
        kind: what the list is called in the file: `rule` or `automation`.

    Raises:
        ValueError: it is neither TOML, YAML nor JSON, or has no list of them with different names.
        OSError: it could not be read.
    """
    with open(path, encoding="utf-8") as file:
        text = file.read()
    content = _READERS.get(os.path.splitext(path)[1], _toml)(text)
    rules = content.get(kind) if isinstance(content, dict) else None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ValueError(f"{path}: expected a list: a table [[{kind}]] each")
    names = [rule.get("name") for rule in rules]
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise ValueError(f"{path}: expected a different name for each {kind}")
    return rules


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ValueError("YAML needs PyYAML: pip install pyyaml; or write the rules as TOML") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"invalid YAML: {error}") from None


_READERS: Final[dict[str, Callable[[str], Any]]] = {".json": json.loads, ".yaml": _yaml, ".yml": _yaml}


def _path(entity: str) -> str:
    return f"/entities/{entity_name(entity)}/alert-rules"


def _all(server: Any, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after = None
    while True:
        page = server.get(path, [("limit", 100), ("after", after)])
        found += page["rules"]
        after = page["next"]
        if after is None:
            return found


def _list(server: Any, path: str, arguments: argparse.Namespace) -> int:
    rules = _all(server, path)
    if arguments.json:
        print(json.dumps(rules, indent=1))
        return 0
    firing = server.get(f"{path}/history", [("limit", 200), ("firing", "true")])["firings"]
    counts: dict[str, int] = {}
    for one in firing:
        counts[one["rule"]] = counts.get(one["rule"], 0) + 1
    if not rules:
        print("there are no rules; `runvitals alerts apply` adds those of a file")
        return 0
    rows = [["RULE", "SEVERITY", "STATE", "FIRES FOR"]]
    for rule in rules:
        state = "muted" if (rule["muted_until_ms"] or 0) > time.time() * 1000 else "on"
        shown = state if rule["enabled"] else "off"
        severity = str(rule["rule"].get("severity", "warning"))
        rows.append([inert(rule["name"]), severity, shown, str(counts.get(rule["name"], 0))])
    print(table(rows))
    return 0


def _history(server: Any, path: str, arguments: argparse.Namespace) -> int:
    firings = server.get(f"{path}/history", [("limit", 100)])["firings"]
    if arguments.json:
        print(json.dumps(firings, indent=1))
        return 0
    rows = [["FIRED", "RULE", "RUN", "METRIC", "HOST", "UNTIL", "NOTIFIED"]]
    for one in firings:
        until = "still" if one["ended_ms"] is None else _when(one["ended_ms"])
        place = inert(f"{one['project']}/{one['run']}")
        about = [inert(one["rule"]), place, inert(one["key"]), inert(one["host"])]
        rows.append([_when(one["fired_ms"]), *about, until, one["notified"] or "–"])
    print(table(rows))
    return 0


def _check(server: Any, path: str, arguments: argparse.Namespace) -> int:
    for rule in read_definitions(arguments.file, "rule"):
        found = server.send("POST", f"{path}/dry-run", {"rule": rule, "days": arguments.days})
        times = "once" if found["times"] == 1 else f"{found['times']} times"
        print(f"{inert(rule['name'])}: would have fired {times} in {found['runs']} runs")
    return 0


def _apply(server: Any, path: str, arguments: argparse.Namespace) -> int:
    wanted = {rule["name"]: rule for rule in read_definitions(arguments.file, "rule")}
    known = {rule["name"]: rule for rule in _all(server, path)}
    for name, rule in wanted.items():
        enabled = rule.get("enabled", True)
        before = known.get(name)
        if before is None:
            server.send("POST", path, {"rule": rule, "enabled": enabled})
            print(f"added {inert(name)}")
        elif before["rule"] != rule or before["enabled"] != enabled:
            server.send("PATCH", f"{path}/{before['id']}", {"rule": rule, "enabled": enabled})
            print(f"changed {inert(name)}")
    for name in known.keys() - wanted.keys() if arguments.prune else ():
        server.send("DELETE", f"{path}/{known[name]['id']}", None)
        print(f"deleted {inert(name)}")
    return 0


def _test(server: Any, path: str, arguments: argparse.Namespace) -> int:
    server.send("POST", f"{path}/{_named(server, path, arguments.name)}/test", {})
    print("a test is on its way to you")
    return 0


def _mute(server: Any, path: str, arguments: argparse.Namespace) -> int:
    until_ms = int(time.time() * 1000 + arguments.hours * _HOUR_MS) if arguments.hours > 0 else None
    server.send("PATCH", f"{path}/{_named(server, path, arguments.name)}", {"muted_until_ms": until_ms})
    state = "no longer muted" if until_ms is None else f"muted until {_when(until_ms)}"
    print(f"{inert(arguments.name)} is {state}")
    return 0


def _named(server: Any, path: str, name: str) -> int:
    for rule in _all(server, path):
        if rule["name"] == name:
            return int(rule["id"])
    raise ValueError(f"there is no rule {name!r}; `runvitals alerts list` shows all")


def _when(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(time_ms / 1000))


_ACTIONS: Final = {
    "list": _list,
    "history": _history,
    "check": _check,
    "apply": _apply,
    "test": _test,
    "mute": _mute,
}
