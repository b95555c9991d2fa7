"""`runvitals organisation`: settings, names and the audit log of a server."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, when
from runvitals.cli.account_store import (
    AccountApi,
    Call,
    Work,
    add_actions,
    finish,
    run_on_accounts,
    service_account_named,
)
from runvitals.cli.argument_types import integer_between, row_id
from runvitals.cli.formatting import moment

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor, AuditEvent

_MAX_KEYS_FILE = 100_000


def add(subparsers: Any) -> None:
    """Add `runvitals organisation` to the parser."""
    actions = add_actions(subparsers, "organisation")
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
    return run_on_accounts(arguments, _WORKS, _CALLS)


def _settings(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.organisation.settings import with_defaults

    values = with_defaults(accounts.settings.all())
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
        raise ValueError(f"invalid setting {text!r}; expected NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _audit(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    from runvitals.server.audit.storage.audit import AuditFilter

    wanted = AuditFilter(action=arguments.what, actor=arguments.actor, entity=arguments.entity)
    return Listing(accounts.audit.page(wanted, arguments.limit), _EVENTS, "the audit log has no such events")


def _release_name(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    api.send("POST", "/organisation/names/{name}/release", name=arguments.name)
    return Outcome(f"the name {arguments.name} can be given again")


def _scim_secret(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    if arguments.remove:
        api.send("DELETE", "/organisation/scim-secret")
        return Outcome("identity providers no longer provision users; users and teams stay")
    secret = api.send("POST", "/organisation/scim-secret")["secret"]
    return Outcome(secret, secret)


def _issuers(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    return Listing(accounts.jwt_issuers.all(), _ISSUERS, "no tokens of other services are accepted")


def _add_issuer(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    if not arguments.url.startswith("https://"):
        raise ValueError(f"invalid URL {arguments.url!r}; expected https://…")
    keys = None
    if arguments.keys is not None:
        from runvitals.server.sign_on.tokens import checked_keys

        with open(arguments.keys, encoding="utf-8") as file:
            keys = checked_keys(file.read(_MAX_KEYS_FILE))
    issuer = accounts.jwt_issuers.create(
        arguments.name, arguments.url, arguments.audience, by, now_ms, pasted_keys=keys
    )
    return Outcome(f"tokens of {issuer.name} are accepted; its ID is {issuer.id}", issuer)


def _assign_subject(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    service_account_named(api.database, arguments.service_account)
    team, _, name = arguments.service_account.rpartition("/")
    body = {"subject": arguments.subject, "service_account": name, "team": team or None}
    api.send("PUT", "/organisation/issuers/{issuer}/subjects", body, issuer=str(arguments.id))
    return Outcome(f"tokens with the subject {arguments.subject} act as {arguments.service_account}")


def _about(event: AuditEvent) -> str:
    places = (event.entity, event.project, event.run)
    return "/".join(place for place in places if place is not None)


_EVENTS: Columns = {
    "TIME": lambda event: moment(event.time_ms),
    "ACTION": lambda event: event.action,
    "BY": lambda event: event.actor_name,
    "FROM": lambda event: event.ip or event.via,
    "KEY": lambda event: event.key_public_id,
    "IN": _about,
    "ON": lambda event: event.target,
    "OUTCOME": lambda event: event.outcome,
}
_ISSUERS: Columns = {
    "ID": lambda issuer: issuer.id,
    "NAME": lambda issuer: issuer.name,
    "URL": lambda issuer: issuer.url,
    "AUDIENCE": lambda issuer: issuer.audience,
    "ENABLED": lambda issuer: issuer.enabled,
    "CREATED": lambda issuer: when(issuer.created_ms),
}
_WORKS: dict[str, Work] = {
    "settings": _settings,
    "audit": _audit,
    "issuers": _issuers,
    "add-issuer": _add_issuer,
}
_CALLS: dict[str, Call] = {
    "set": _set,
    "release-name": _release_name,
    "scim-secret": _scim_secret,
    "assign-subject": _assign_subject,
}
