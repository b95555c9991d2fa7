"""`runvitals organisation`: settings, names and the audit log of a server."""

from __future__ import annotations

import argparse
import json
from typing import Any

from runvitals.cli import WrongUsage
from runvitals.cli.account_api import AccountApi, Call, add_actions, finish, run_on_accounts
from runvitals.cli.account_output import Columns, Listing, Outcome, when
from runvitals.cli.argument_types import integer_between, row_id
from runvitals.cli.database_actions import add_issuer
from runvitals.cli.formatting import moment


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals organisation`."""
    actions = add_actions(parser)
    actions.add_parser("settings", help="list the settings")
    change = actions.add_parser("set", help="change settings")
    change.add_argument(
        "settings", metavar="NAME=VALUE", nargs="+", help="such as signup=open or trash_days=7; JSON values"
    )
    audit = actions.add_parser("audit", help="list the newest events of the audit log")
    audit.add_argument("--what", metavar="ACTION", help="team.invite, or team.* for all of teams")
    audit.add_argument("--actor", metavar="NAME", help="only what this user or service account did")
    audit.add_argument("--entity", metavar="NAME", help="only of this team or user")
    audit.add_argument("--limit", type=integer_between(1, 1000), default=50, help="at most 1000; default: 50")
    release = actions.add_parser("release-name", help="let the name of a removed user or team be given again")
    release.add_argument("name", metavar="NAME")
    _add_outside(actions)
    finish(actions)


def _add_outside(actions: Any) -> None:
    """Add the actions for identity providers, and for services whose tokens count as keys."""
    scim = actions.add_parser(
        "scim-secret", help="print a new secret for provisioning by SCIM, once; the old one stops working"
    )
    scim.add_argument("--remove", action="store_true", help="end provisioning; users and teams stay")
    actions.add_parser("issuers", help="list the services whose tokens programs may use as keys")
    issuer = actions.add_parser("add-issuer", help="accept the tokens of a service, such as GitHub Actions")
    issuer.add_argument("name", metavar="NAME")
    issuer.add_argument("url", metavar="URL", help="exactly as the claim `iss` of its tokens")
    issuer.add_argument("--audience", required=True, help="the claim `aud` that tokens must have")
    issuer.add_argument(
        "--keys",
        metavar="FILE",
        help="a JWKS document with its keys, for an issuer that the server cannot reach; default: the server "
        "asks the issuer",
    )
    assign = actions.add_parser(
        "assign-subject", help="let tokens with a subject act as a service account of a team"
    )
    assign.add_argument("id", metavar="ID", type=row_id, help="the ID column of `issuers`")
    assign.add_argument("subject", metavar="SUBJECT", help="the claim `sub` of the tokens")
    assign.add_argument("service_account", metavar="TEAM/NAME")


def run(arguments: argparse.Namespace) -> int:
    """Print or change settings of the organisation, or print its audit log; return the exit code."""
    return run_on_accounts(arguments, _CALLS, {"add-issuer": add_issuer})


def _settings(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    settings = api.get("/organisation/settings")["settings"]
    del settings["smtp_url"]  # the routes in this process cannot read it: the server has its key
    values = {name: setting["value"] for name, setting in settings.items()}
    return Outcome("\n".join(f"{name}: {_value(value)}" for name, value in values.items()), values)


def _value(value: object) -> str:
    """A setting's value as `set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _set(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    changes = dict(_change(text) for text in arguments.settings)
    settings = api.send("PUT", "/organisation/settings", changes)["settings"]
    return Outcome("\n".join(f"{name}: {_value(settings[name]['value'])}" for name in changes))


def _change(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise WrongUsage(f"invalid setting {text!r}; expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _audit(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    parameters = {
        "action": arguments.what,
        "actor": arguments.actor,
        "entity": arguments.entity,
        "limit": arguments.limit,
    }
    events = api.get("/organisation/audit", parameters.items())["events"]
    return Listing(events, _EVENTS, "the audit log has no such events")


def _release_name(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    api.send("POST", "/organisation/names/{name}/release", name=arguments.name)
    return Outcome(f"the name {arguments.name} can be given again")


def _scim_secret(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    if arguments.remove:
        api.send("DELETE", "/organisation/scim-secret")
        return Outcome("identity providers no longer provision users; users and teams stay")
    secret = api.send("POST", "/organisation/scim-secret")["secret"]
    return Outcome(secret, secret)


def _issuers(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    issuers = api.every("/organisation/issuers", "issuers")
    return Listing(issuers, _ISSUERS, "no tokens of other services are accepted")


def _assign_subject(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    _, account = api.service_account(arguments.service_account)
    team = account.get("team")
    body = {"subject": arguments.subject, "service_account": account["account"], "team": team}
    api.send("PUT", "/organisation/issuers/{issuer}/subjects", body, issuer=str(arguments.id))
    return Outcome(f"tokens with the subject {arguments.subject} act as {arguments.service_account}")


def _about(event: dict[str, Any]) -> str:
    return "/".join(name for name in map(event.get, ("entity", "project", "run")) if name is not None)


_EVENTS: Columns = {
    "TIME": lambda event: moment(event["time_ms"]),
    "ACTION": lambda event: event["action"],
    "BY": lambda event: event["actor_name"],
    "FROM": lambda event: event["ip"] or event["via"],
    "KEY": lambda event: event["key_public_id"],
    "IN": _about,
    "ON": lambda event: event["target"],
    "OUTCOME": lambda event: event["outcome"],
}
_ISSUERS: Columns = {
    "ID": lambda issuer: issuer["id"],
    "NAME": lambda issuer: issuer["name"],
    "URL": lambda issuer: issuer["url"],
    "AUDIENCE": lambda issuer: issuer["audience"],
    "ENABLED": lambda issuer: issuer["enabled"],
    "CREATED": lambda issuer: when(issuer["created_ms"]),
}
_CALLS: dict[str, Call] = {
    "settings": _settings,
    "set": _set,
    "audit": _audit,
    "release-name": _release_name,
    "scim-secret": _scim_secret,
    "issuers": _issuers,
    "assign-subject": _assign_subject,
}
