"""`runvitals key`: the API keys of users and service accounts."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli import database_actions
from runvitals.cli.account_api import AccountApi, Call, Work, add_actions, finish, now_ms, run_on_accounts
from runvitals.cli.account_output import Columns, Listing, Outcome, expected, when
from runvitals.cli.argument_types import time_ms
from runvitals.model.durations import DAY_MS


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals key`."""
    actions = add_actions(parser)
    create = actions.add_parser("create", help="print a new key, once")
    create.add_argument("name", metavar="NAME", help="what it is for")
    owner = create.add_mutually_exclusive_group(required=True)
    owner.add_argument("--user", metavar="USER")
    owner.add_argument("--service-account", metavar="TEAM/NAME", help="see `runvitals service-account list`")
    create.add_argument("--scope", choices=("ingest", "read", "write", "full"), default="write")
    create.add_argument("--team", metavar="TEAM", action="append", default=[], help="works only in this team")
    create.add_argument("--expires", metavar="AGE", type=time_ms, help="90d, 12h, 2w, 1y; default: never")
    show = actions.add_parser("list", help="list keys; the keys themselves are never shown")
    show.add_argument("--revoked", action="store_true", help="also revoked ones")
    rotate = actions.add_parser("rotate", help="print a new key with the same rights, once")
    rotate.add_argument("key", metavar="KEY", help="the KEY column of `list`")
    rotate.add_argument(
        "--overlap",
        metavar="AGE",
        type=time_ms,
        default=DAY_MS,
        help="until the old key ends; default: 1d",
    )
    revoke = actions.add_parser("revoke", help="revoke a key")
    revoke.add_argument("key", metavar="KEY", help="the KEY column of `list`")
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    """Create, list or revoke API keys; return the exit code."""
    return run_on_accounts(arguments, _CALLS, _WORKS)


def _create(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    path, names = api.service_account(arguments.service_account)
    expires_ms = None if arguments.expires is None else now_ms() + arguments.expires
    new = {"name": arguments.name, "scope": arguments.scope, "expires_ms": expires_ms}
    teams = [api.team(team) for team in arguments.team]
    key = api.send("POST", f"{path}/api-keys", {**new, "teams": teams}, **names)
    return Outcome(key["key"], {"key": key["key"], "public_id": key["id"]})


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    keys = [{**key, "state": _state(key)} for key in _all(api, revoked=arguments.revoked)]
    return Listing(keys, _KEYS, "there are no keys; `runvitals key create NAME --user USER` creates one")


def _revoke(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    keys = {key["public_id"]: key for key in _all(api, revoked=True)}
    if arguments.key not in keys:
        valid = (public_id for public_id, key in keys.items() if key["revoked_ms"] is None)
        raise LookupError(f"there is no key {arguments.key!r}; {expected(valid, 'runvitals key list')}")
    api.send("DELETE", "/organisation/api-keys/{key}", key=arguments.key)
    return Outcome(f"the key {keys[arguments.key]['name']} ({arguments.key}) no longer works")


def _all(api: AccountApi, *, revoked: bool) -> list[dict[str, Any]]:
    """Return the keys, each with the name of its shown part that JSON of this command has."""
    parameters = [("revoked", "true" if revoked else "false")]
    keys = api.every("/organisation/api-keys", "api_keys", parameters)
    return [{"public_id": key.pop("id"), **key} for key in keys]


def _state(key: dict[str, Any]) -> str:
    if key["revoked_ms"] is not None:
        return "revoked"
    return "expired" if key["expires_ms"] is not None and key["expires_ms"] <= now_ms() else "valid"


_KEYS: Columns = {
    "KEY": lambda key: key["public_id"],
    "NAME": lambda key: key["name"],
    "OWNER": lambda key: key["owner"],
    "SCOPE": lambda key: key["scope"],
    "ONLY IN": lambda key: key["teams"],
    "CREATED": lambda key: when(key["created_ms"]),
    "LAST USED": lambda key: when(key["last_used_ms"]),
    "EXPIRES": lambda key: when(key["expires_ms"]),
    "STATE": lambda key: key["state"],
}
_CALLS: dict[str, Call] = {"create": _create, "list": _list, "revoke": _revoke}
_WORKS: dict[str, Work] = {
    "create": database_actions.create_key_of_user,
    "rotate": database_actions.rotate_key,
}
