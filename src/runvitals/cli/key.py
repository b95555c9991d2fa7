"""`runvitals key`: the API keys of users and service accounts."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, expected, when
from runvitals.cli.account_store import (
    Work,
    add_actions,
    finish,
    notices,
    run_on_accounts,
    service_account_named,
    service_account_path,
    team_named,
    user_named,
)
from runvitals.cli.argument_types import time_ms
from runvitals.model.durations import DAY_MS

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.keys import KeyRow
    from runvitals.server.audit.storage.audit import Actor


def add(subparsers: Any) -> None:
    """Add `runvitals key` to the parser."""
    actions = add_actions(subparsers, "key")
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
    return run_on_accounts(arguments, _WORKS)


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.mail.messages import key_created

    owner = None if arguments.user is None else user_named(accounts, arguments.user)
    path = arguments.service_account
    account_id = None if path is None else service_account_named(accounts, path).id
    teams = [team_named(accounts, team).id for team in arguments.team]

    def create_key() -> tuple[str, KeyRow]:
        secret, key = accounts.keys.create(
            arguments.name,
            by,
            now_ms,
            user_id=None if owner is None else owner.id,
            service_account_id=account_id,
            scope=arguments.scope,
            entities=teams,
            expires_ms=None if arguments.expires is None else now_ms + arguments.expires,
        )
        if owner is not None:
            notices(accounts, now_ms).to_user(owner.id, key_created(owner.name, key.name, key.public_id))
        return secret, key

    return _secret(*accounts.in_one_transaction(create_key))


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    keys = accounts.keys.all(revoked=arguments.revoked)
    users = {row.user.id: row.user.name for row in accounts.users.listed()}
    services = {row.id: service_account_path(row) for row in accounts.service_accounts.all()}
    names = accounts.entity_names({entity for key in keys for entity in key.entities})
    rows = [
        {
            **asdict(key),
            "owner": users.get(key.user_id or 0) or services.get(key.service_account_id or 0),
            "entities": sorted(key.entities),
            "teams": sorted(names[entity] for entity in key.entities if entity in names),
            "state": _state(key, now_ms),
        }
        for key in keys
    ]
    return Listing(rows, _KEYS, "there are no keys; `runvitals key create NAME --user USER` creates one")


def _rotate(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    secret, key = accounts.keys.rotate(_named(accounts, arguments.key).id, by, now_ms, arguments.overlap)
    return _secret(secret, key)


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.mail.messages import key_revoked

    key = _named(accounts, arguments.key)

    def revoke_key() -> None:
        accounts.keys.revoke(key.id, by, now_ms)
        if key.user_id is not None and key.revoked_ms is None:
            message = key_revoked(accounts.users.get(key.user_id).name, key.name, key.public_id)
            notices(accounts, now_ms).to_user(key.user_id, message)

    accounts.in_one_transaction(revoke_key)
    return Outcome(f"the key {key.name} ({key.public_id}) no longer works")


def _named(accounts: AccountStore, public_id: str) -> KeyRow:
    for key in accounts.keys.all(revoked=True):
        if key.public_id == public_id:
            return key
    known = (key.public_id for key in accounts.keys.all())
    raise LookupError(f"there is no key {public_id!r}; {expected(known, 'runvitals key list')}")


def _secret(secret: str, key: KeyRow) -> Outcome:
    """The key alone for a terminal or a script's variable; with what is known of it as JSON."""
    return Outcome(secret, {"key": secret, "public_id": key.public_id, "id": key.id})


def _state(key: KeyRow, now_ms: int) -> str:
    if key.revoked_ms is not None:
        return "revoked"
    return "expired" if key.expires_ms is not None and key.expires_ms <= now_ms else "valid"


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
_WORKS: dict[str, Work] = {"create": _create, "list": _list, "rotate": _rotate, "revoke": _revoke}
