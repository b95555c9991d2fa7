"""`runvitals key`: the API keys of users and service accounts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_store import DESCRIPTION, add_actions, finish, run_on_accounts
from runvitals.cli.argument_types import time_ms

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor
    from runvitals.store.metadata.accounts.keys import KeyRow


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "key",
        help="create, rotate and revoke the API keys of users and service accounts",
        description=DESCRIPTION,
    )
    actions = add_actions(parser)
    create = actions.add_parser("create", help="print a new key, once")
    create.add_argument("name", metavar="NAME", help="what it is for")
    owner = create.add_mutually_exclusive_group(required=True)
    owner.add_argument("--user", metavar="USER")
    owner.add_argument("--service-account", metavar="TEAM/NAME", help="see `runvitals team service-account`")
    create.add_argument("--scope", choices=("ingest", "read", "write", "full"), default="write")
    create.add_argument("--team", metavar="TEAM", action="append", default=[], help="works only in this team")
    create.add_argument("--expires", metavar="AGE", type=time_ms, help="90d, 12h, 2w, 1y; default: never")
    show = actions.add_parser("list", help="list keys; the keys themselves are never shown")
    show.add_argument("--revoked", action="store_true", help="also revoked ones")
    rotate = actions.add_parser("rotate", help="print a new key with the same rights, once")
    rotate.add_argument("key", metavar="KEY", help="the PUBLIC ID column of `list`")
    rotate.add_argument(
        "--overlap",
        metavar="AGE",
        type=time_ms,
        default=86_400_000,
        help="until the old key ends; default: 1d",
    )
    revoke = actions.add_parser("revoke", help="revoke a key")
    revoke.add_argument("key", metavar="KEY", help="the PUBLIC ID column of `list`")
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    user = None if arguments.user is None else accounts.users.by_name(arguments.user).id
    service = None if arguments.service_account is None else _service(accounts, arguments.service_account)
    expires_ms = None if arguments.expires is None else now_ms + arguments.expires
    secret, key = accounts.keys.create(
        arguments.name,
        by,
        now_ms,
        user_id=user,
        service_account_id=service,
        scope=arguments.scope,
        entities=[accounts.teams.by_name(team).id for team in arguments.team],
        expires_ms=expires_ms,
    )
    return _shown(arguments, secret, key)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.keys.all(revoked=arguments.revoked)


def _rotate(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    old = accounts.keys.by_public_id(arguments.key)
    secret, key = accounts.keys.rotate(old.id, by, now_ms, arguments.overlap)
    return _shown(arguments, secret, key)


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.keys.revoke(accounts.keys.by_public_id(arguments.key).id, by, now_ms)
    return None


def _service(accounts: AccountStore, path: str) -> int:
    team_name, _, name = path.partition("/")
    team = accounts.teams.by_name(team_name)
    for account in accounts.service_accounts.all(team.id):
        if account.name == name:
            return account.id
    raise LookupError(f"there is no service account {name!r} in the team {team_name!r}")


def _shown(arguments: argparse.Namespace, secret: str, key: KeyRow) -> object:
    """The key alone for a terminal or a script's variable; with what is known of it as JSON."""
    return {"key": secret, "public_id": key.public_id, "id": key.id} if arguments.json else secret


_ACTIONS = {"create": _create, "list": _list, "rotate": _rotate, "revoke": _revoke}
