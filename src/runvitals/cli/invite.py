"""`runvitals invite`: invitations to the teams of a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, expected, when
from runvitals.cli.account_store import (
    Work,
    add_actions,
    finish,
    link,
    run_on_accounts,
    team_named,
)
from runvitals.cli.argument_types import integer_between, row_id

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.teams.storage.invitations import InvitationRow


def add(subparsers: Any) -> None:
    """Add `runvitals invite` to the parser."""
    actions = add_actions(
        subparsers,
        "invite",
        "Prints a link; give it to the user. No mail is sent. Without the setting `url`, it is "
        "the path of the link: put the server's address before it.",
    )
    create = actions.add_parser("create", help="print a link to join a team, once")
    create.add_argument("team", metavar="TEAM")
    create.add_argument("address", metavar="ADDRESS", nargs="?", help="default: a link that anyone can use")
    create.add_argument("--role", default="member", help="viewer, member, admin, or a custom role")
    create.add_argument(
        "--days", type=integer_between(1, 30), default=7, help="how long it is valid, 1 to 30; default: 7"
    )
    show = actions.add_parser("list", help="list pending invitations")
    show.add_argument("team", metavar="TEAM", nargs="?")
    show.add_argument("--ended", action="store_true", help="also those that ended")
    for name, text in (
        ("resend", "print a new link; the old one stops working"),
        ("revoke", "end an invitation"),
    ):
        actions.add_parser(name, help=text).add_argument(
            "id", metavar="ID", type=row_id, help="the ID column of `list`"
        )
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    """Create, list or revoke invitations; return the exit code."""
    return run_on_accounts(arguments, _WORKS)


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team = team_named(accounts, arguments.team)
    secret, invitation = accounts.invitations.create(
        team.name, arguments.address, arguments.role, by, now_ms, days=arguments.days
    )
    path = _path(secret)
    record = {"path": path, "id": invitation.id, "expires_ms": invitation.expires_ms}
    return Outcome(link(accounts, path), record)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    team = None if arguments.team is None else team_named(accounts, arguments.team).name
    accounts.invitations.expire(now_ms)
    rows = accounts.invitations.all(team, pending=not arguments.ended)
    which, where = "" if arguments.ended else "pending ", "" if team is None else f" to {team}"
    return Listing(rows, _INVITATIONS, f"there are no {which}invitations{where}")


def _resend(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    _check(accounts, arguments.id)
    path = _path(accounts.invitations.resend(arguments.id, by, now_ms))
    return Outcome(link(accounts, path), {"path": path, "id": arguments.id})


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    _check(accounts, arguments.id)
    accounts.invitations.revoke(arguments.id, by, now_ms)
    return Outcome(f"the link of invitation {arguments.id} no longer works")


def _check(accounts: AccountStore, invitation_id: int) -> None:
    """Raise LookupError, which names the pending invitations, if there never was one with this id."""
    if all(row.id != invitation_id for row in accounts.invitations.all(pending=False)):
        pending = (str(row.id) for row in accounts.invitations.all())
        raise LookupError(
            f"there is no invitation {invitation_id}; {expected(pending, 'runvitals invite list')}"
        )


def _path(secret: str) -> str:
    """After `#`, so that no log and no other site gets to see the secret."""
    return f"/-/invitation#{secret}"


def _invited(row: InvitationRow) -> str:
    return row.address or row.user or "anyone with the link"


_INVITATIONS: Columns = {
    "ID": lambda row: row.id,
    "FOR": _invited,
    "TEAM": lambda row: row.team,
    "ROLE": lambda row: row.custom_role or row.role,
    "INVITED BY": lambda row: row.inviter or "the command line",
    "SENT": lambda row: when(row.sent_ms),
    "EXPIRES": lambda row: when(row.expires_ms),
    "STATE": lambda row: row.state,
}
_WORKS: dict[str, Work] = {"create": _create, "list": _list, "resend": _resend, "revoke": _revoke}
