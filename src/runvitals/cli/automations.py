"""`runvitals automations`: the automations of a team on a server."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any, Final

from runvitals.cli.formatting import inert, table
from runvitals.cli.team_definitions import (
    add_listings,
    add_server,
    connected,
    delete_others,
    every,
    read_definitions,
    send_definition,
)
from runvitals.model.account_names import entity_name

if TYPE_CHECKING:
    from runvitals.readers.servers.connection import ApiConnection

_PARTS: Final = ("name", "event", "filter", "actions", "cooldown_h")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals automations`."""
    parser.description = __doc__
    add_server(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add_listings(
        actions, (("list", "the automations"), ("history", "what they sent, and whether it arrived"))
    )
    apply = actions.add_parser("apply", help="make the automations of a team those of a file")
    apply.add_argument("team", metavar="TEAM")
    apply.add_argument(
        "file", metavar="FILE", help="TOML, YAML or JSON, with a list of automations named `automation`"
    )
    apply.add_argument("--prune", action="store_true", help="delete automations that the file does not have")
    for name, text in (
        ("enable", "switch an automation on"),
        ("disable", "switch an automation off"),
        ("preview", "how often it would have acted in the last 30 days"),
        ("test", "send a message about an invented run to its receivers"),
        ("delete", "delete an automation"),
    ):
        command = actions.add_parser(name, help=text)
        command.add_argument("team", metavar="TEAM")
        command.add_argument("name", metavar="AUTOMATION")


def run(arguments: argparse.Namespace) -> int:
    """Run an action on the automations of a team; return 0."""
    action = {"list": _list, "history": _history, "apply": _apply}.get(arguments.action, _run_action)
    with connected(arguments) as server:
        return action(server, f"/teams/{entity_name(arguments.team)}", arguments)


def _all(server: ApiConnection, path: str) -> list[dict[str, Any]]:
    return every(server.get, f"{path}/automations", "automations")


def _list(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    automations = _all(server, path)
    if arguments.json:
        print(json.dumps(automations, indent=1))
        return 0
    rows = [["AUTOMATION", "STATE", "EVENT", "ACTIONS", "BY"]]
    for automation in automations:
        state = "on" if automation["enabled"] else "off"
        actions = ", ".join(dict.fromkeys(inert(action["kind"]) for action in automation["actions"]))
        rows.append(
            [
                inert(automation["name"]),
                state,
                inert(automation["event"]["kind"]),
                actions,
                inert(automation["created_by"] or "–"),
            ]
        )
    print(table(rows))
    return 0


def _history(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    notifications = server.get(f"{path}/notifications", [("limit", 100)])["notifications"]
    if arguments.json:
        print(json.dumps(notifications, indent=1))
        return 0
    rows = [["WHAT", "BY", "STATE", "TRIES", "WHY"]]
    for notification in notifications:
        by = f"{notification['channel']}:{notification['receiver']}"
        why = inert(notification["error"] or "")[:80]
        rows.append(
            [inert(notification["title"]), inert(by), notification["state"], str(notification["tries"]), why]
        )
    print(table(rows))
    return 0


def _apply(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    in_file = {
        automation["name"]: automation for automation in read_definitions(arguments.file, "automation")
    }
    on_server = {automation["name"]: automation for automation in _all(server, path)}
    for name, automation in in_file.items():
        before, where = on_server.get(name), f"{inert(arguments.file)}: automation {inert(name)!r}"
        if before is None:
            send_definition(server, "POST", f"{path}/automations", automation, where)
            print(f"added {inert(name)}")
            continue
        changed = send_definition(server, "PATCH", f"{path}/automations/{before['id']}", automation, where)
        if any(changed[part] != before[part] for part in (*_PARTS, "enabled")):
            print(f"changed {inert(name)}")
    if arguments.prune:
        delete_others(server, f"{path}/automations", on_server, in_file)
    return 0


def _run_action(server: ApiConnection, path: str, arguments: argparse.Namespace) -> int:
    """Enable, disable, preview, test or delete an automation."""
    name, action = arguments.name, arguments.action
    numbers = [automation["id"] for automation in _all(server, path) if automation["name"] == name]
    if not numbers:
        raise ValueError(f"there is no automation {name!r}; `runvitals automations list` shows all")
    address = f"{path}/automations/{numbers[0]}"
    if action == "delete":
        server.send("DELETE", address, None)
        print(f"deleted {inert(name)}")
    elif action == "test":
        sent = server.send("POST", f"{address}/test", {})["sent"]
        print(f"{sent} {'message is' if sent == 1 else 'messages are'} on the way")
    elif action == "preview":
        preview = server.send("POST", f"{address}/preview", {})
        times = (
            "it is not kept when this happened" if preview["times"] is None else f"{preview['times']} times"
        )
        print(f"{inert(name)} in the last {preview['days']} days: {times}")
    else:
        server.send("PATCH", address, {"enabled": action == "enable"})
        print(f"{inert(name)} is {'on' if action == 'enable' else 'off'}")
    return 0
