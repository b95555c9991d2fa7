"""`runvitals invite`: invitations to the teams of a server."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli.account_api import AccountApi, Call, add_actions, finish, run_on_accounts
from runvitals.cli.account_output import Columns, Listing, Outcome, expected, when
from runvitals.cli.argument_types import integer_between, row_id


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals invite`."""
    actions = add_actions(
        parser,
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
    show.add_argument("--ended", action="store_true", help="also those that ended within 30 days")
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
    return run_on_accounts(arguments, _CALLS)


def _create(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team = api.team(arguments.team)
    who = {"link": True} if arguments.address is None else {"people": [arguments.address]}
    kind = "role" if arguments.role in ("viewer", "member", "admin") else "custom_role"
    body = {**who, kind: arguments.role, "expires_days": arguments.days}
    (result,) = api.send("POST", "/teams/{team}/invitations", body, team=team)["results"]
    if result["state"] == "already_invited":  # with the same role: a new link
        return _resend_to(api, team, arguments.address)
    if result["state"] != "invited":
        reason = result.get("reason") or f"{arguments.address} is in the team {team}"
        raise ValueError(reason)
    record = {"path": result["url"], "id": result["id"], "expires_ms": result["expires_ms"]}
    return Outcome(api.link(result["url"]), record)


def _resend_to(api: AccountApi, team: str, address: str) -> Outcome:
    (invitation,) = (row for row in _all(api, team) if row["address"] == address and _is_pending(row))
    return _renew(api, invitation)


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    team = None if arguments.team is None else api.team(arguments.team)
    rows = [row for row in _all(api, team) if arguments.ended or _is_pending(row)]
    which, where = "" if arguments.ended else "pending ", "" if team is None else f" to {team}"
    return Listing(rows, _INVITATIONS, f"there are no {which}invitations{where}")


def _resend(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    return _renew(api, _with_id(api, arguments.id))


def _renew(api: AccountApi, invitation: dict[str, Any]) -> Outcome:
    path, names = _address(invitation)
    result = api.send("POST", f"{path}/resend", **names)
    record = {"path": result["url"], "id": invitation["id"], "expires_ms": result["expires_ms"]}
    return Outcome(api.link(result["url"]), record)


def _revoke(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    path, names = _address(_with_id(api, arguments.id))
    api.send("DELETE", path, **names)
    return Outcome(f"the link of invitation {arguments.id} no longer works")


def _all(api: AccountApi, team: str | None = None) -> list[dict[str, Any]]:
    """Return the invitations to a team, or to all teams and the organisation, the oldest first."""
    path = "/teams/{team}/invitations"
    teams = api.teams() if team is None else [team]
    rows = [row for name in teams for row in api.every(path, "invitations", team=name)]
    if team is None:
        rows += api.every("/organisation/invitations", "invitations")
    return sorted(rows, key=lambda row: row["id"])


def _with_id(api: AccountApi, invitation_id: int) -> dict[str, Any]:
    """Return an invitation; a LookupError names the pending ones."""
    rows = {row["id"]: row for row in _all(api)}
    if invitation_id not in rows:
        pending = (str(row["id"]) for row in rows.values() if _is_pending(row))
        raise LookupError(
            f"there is no invitation {invitation_id}; {expected(pending, 'runvitals invite list')}"
        )
    return rows[invitation_id]


def _address(invitation: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the path of an invitation in the API, and the names in it."""
    names = {"invitation": str(invitation["id"])}
    if invitation["team"] is None:
        return "/organisation/invitations/{invitation}", names
    return "/teams/{team}/invitations/{invitation}", {**names, "team": invitation["team"]}


def _is_pending(invitation: dict[str, Any]) -> bool:
    return bool(invitation["state"] == "pending")


def _invited(invitation: dict[str, Any]) -> str:
    return invitation["address"] or invitation["user"] or "anyone with the link"


_INVITATIONS: Columns = {
    "ID": lambda row: row["id"],
    "FOR": _invited,
    "TEAM": lambda row: row["team"],
    "ROLE": lambda row: row["custom_role"] or row["role"],
    "INVITED BY": lambda row: row["invited_by"] or "the command line",
    "SENT": lambda row: when(row["sent_ms"]),
    "EXPIRES": lambda row: when(row["expires_ms"]),
    "STATE": lambda row: row["state"],
}
_CALLS: dict[str, Call] = {"create": _create, "list": _list, "resend": _resend, "revoke": _revoke}
