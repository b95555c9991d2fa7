"""`runvitals invite`: invitations to the teams of a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_store import DESCRIPTION, add_actions, finish, run_on_accounts

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "invite",
        help="invite users to the teams of a server",
        description="Prints the path of a link: append it to the server's address and give it to the user. "
        f"No mail is sent. {DESCRIPTION}",
    )
    actions = add_actions(parser)
    create = actions.add_parser("create", help="print a link to join a team, once")
    create.add_argument("team", metavar="TEAM")
    create.add_argument("address", metavar="ADDRESS", nargs="?", help="default: a link that anyone can use")
    create.add_argument("--role", default="member", help="viewer, member, admin, or a custom role")
    create.add_argument("--days", type=int, default=7, help="how long it is valid, 1 to 30; default: 7")
    show = actions.add_parser("list", help="list pending invitations")
    show.add_argument("team", metavar="TEAM", nargs="?")
    show.add_argument("--ended", action="store_true", help="also those that ended")
    for name, text in (
        ("resend", "print a new link; the old one stops working"),
        ("revoke", "end an invitation"),
    ):
        actions.add_parser(name, help=text).add_argument(
            "id", metavar="ID", type=int, help="the ID column of `list`"
        )
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    secret, invitation = accounts.invitations.create(
        arguments.team, arguments.address, arguments.role, by, now_ms, days=arguments.days
    )
    return {"path": _path(secret), "id": invitation.id, "expires_ms": invitation.expires_ms}


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.invitations.expire(now_ms)
    return accounts.invitations.all(arguments.team, pending=not arguments.ended)


def _resend(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return {"path": _path(accounts.invitations.resend(arguments.id, by, now_ms)), "id": arguments.id}


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.invitations.revoke(arguments.id, by, now_ms)
    return None


def _path(secret: str) -> str:
    """After `#`, so that no log and no other site gets to see the secret."""
    return f"/-/invitation#{secret}"


_ACTIONS = {"create": _create, "list": _list, "resend": _resend, "revoke": _revoke}
