"""What commands about accounts do on the database itself, because nobody may do it over the network.

* Making a user without an invitation, putting users into teams without asking them, and giving out a user's
  password, link to set one, or key: all that lets somebody act as somebody else. Who can write to the
  database can do that anyway; a server offers it to nobody.
* The way back in: the first administrator, a lost second factor.
* Taking over what a server stored before it had accounts.
* What a server itself would do differently: it asks an issuer for its keys, and knows guest links by project.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from runvitals.cli import WrongUsage
from runvitals.cli.account_output import Outcome, expected
from runvitals.cli.first_administrator import tell_removed

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.keys import KeyRow
    from runvitals.server.accounts.storage.users import UserRow
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.mail.notices import Notices
    from runvitals.server.teams.storage.teams import TeamRow

_MAX_KEYS_FILE = 100_000


def create_user(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Create a user, who may be the first administrator."""
    addresses = (arguments.email,) if arguments.email else ()
    hashed = _hashed(arguments.name, addresses) if arguments.password else None
    if arguments.admin:
        tell_removed(accounts.remove_planted(by, now_ms))
    user = accounts.users.create(
        arguments.name,
        by,
        now_ms,
        display_name=arguments.display_name,
        address=arguments.email,
        verified=True,
        org_role="admin" if arguments.admin else "member",
    )
    if hashed is not None:
        accounts.credentials.set_password(user.id, hashed, by, now_ms)
        return Outcome(f"created the user {user.name}", user)
    how = f"`runvitals user reset-link {user.name}` prints a link to set a password"
    return Outcome(f"created the user {user.name}; {how}", user)


def prepare_administrator(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> None:
    """Remove what requests had made of accounts, before a user becomes the first administrator."""
    if arguments.role == "admin":
        tell_removed(accounts.remove_planted(by, now_ms))


def set_password(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Set a user's password, which the user has to change."""
    from runvitals.server.mail.messages import password_changed

    user = _user(accounts, arguments.name)
    hashed = _hashed(user.name, tuple(email.address for email in accounts.emails.of_user(user.id)))

    def change() -> None:
        accounts.credentials.set_password(user.id, hashed, by, now_ms, must_change=True)
        _notices(accounts, now_ms).to_user(user.id, password_changed(user.name))

    accounts.in_one_transaction(change)
    return Outcome(f"the password of {user.name} was set; {user.name} has to choose another after signing in")


def make_reset_link(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Make a link with which a user sets a password."""
    user = _user(accounts, arguments.name)
    secret = accounts.one_time_tokens.create("reset_password", now_ms, user_id=user.id)
    accounts.audit.record(now_ms, by, "user.password_reset_link", target=user.name)
    path = f"/-/reset#{secret}"
    url = os.environ.get("RUNVITALS_URL") or accounts.settings.all().get("url")
    server = str(url or "ADDRESS-OF-THE-SERVER").rstrip("/")  # it may be in a file that only the server reads
    return Outcome(server + path, {"path": path})


def remove_second_factor(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> Outcome:
    """Let a user sign in by password alone."""
    from runvitals.server.mail.messages import second_factor_removed

    user = _user(accounts, arguments.name)
    asks_passkey = accounts.passkeys.asked_after_password(user.id)
    if accounts.credentials.second_factor(user.id) is None and not asks_passkey:
        raise LookupError(f"{user.name} has no second factor")

    def change() -> None:
        if asks_passkey:
            accounts.passkeys.ask_after_password(user.id, False, (), by, now_ms)
        accounts.credentials.remove_second_factor(user.id, by, now_ms)
        _notices(accounts, now_ms).to_user(user.id, second_factor_removed(user.name))

    accounts.in_one_transaction(change)
    return Outcome(f"{user.name} signs in by password alone now")


def create_team(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> Outcome | None:
    """Create a team with an administrator, who is not asked, or with what was stored before accounts."""
    if arguments.admin is None and not arguments.adopt:
        return None
    first = None if arguments.admin is None else _user(accounts, arguments.admin).id
    team = accounts.teams.create(arguments.team, by, now_ms, administrator=first)
    if arguments.adopt:
        accounts.teams.adopt(team.id, by, now_ms)
    whose = "without members" if first is None else f"with {arguments.admin} as administrator"
    return Outcome(f"created the team {team.name} {whose}", team)


def adopt(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Give a team what the server stored before it had accounts."""
    team = _team(accounts, arguments.team)
    projects = accounts.teams.adopt(team.id, by, now_ms)
    return Outcome(f"the team {team.name} has got {projects} projects", {"projects": projects})


def add_member(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Put a user into a team."""
    from runvitals.server.audit.storage.audit import OPERATOR_NAME
    from runvitals.server.mail.messages import added_to_team

    team, user = _team(accounts, arguments.team), _user(accounts, arguments.user)

    def add() -> None:
        accounts.members.add(team.name, user.name, arguments.role, by, now_ms)
        message = added_to_team(team.name, arguments.role, OPERATOR_NAME)
        _notices(accounts, now_ms).to_user(user.id, message)

    accounts.in_one_transaction(add)
    return Outcome(f"{user.name} is in the team {team.name} now, as {arguments.role}")


def create_key_of_user(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> Outcome | None:
    """Make a key with which somebody acts as a user, not as a service account."""
    if arguments.user is None:
        return None
    from runvitals.server.mail.messages import key_created

    owner = _user(accounts, arguments.user)
    teams = [_team(accounts, team).id for team in arguments.team]

    def create() -> tuple[str, KeyRow]:
        secret, key = accounts.keys.create(
            arguments.name,
            by,
            now_ms,
            user_id=owner.id,
            scope=arguments.scope,
            entities=teams,
            expires_ms=None if arguments.expires is None else now_ms + arguments.expires,
        )
        _notices(accounts, now_ms).to_user(owner.id, key_created(owner.name, key.name, key.public_id))
        return secret, key

    return _secret(*accounts.in_one_transaction(create))


def rotate_key(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Replace a key of anyone by one with the same rights."""
    keys = {key.public_id: key for key in accounts.keys.all(revoked=True)}
    if arguments.key not in keys:
        valid = (key.public_id for key in keys.values() if key.revoked_ms is None)
        raise LookupError(f"there is no key {arguments.key!r}; {expected(valid, 'runvitals key list')}")
    return _secret(*accounts.keys.rotate(keys[arguments.key].id, by, now_ms, arguments.overlap))


def add_issuer(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    """Accept the tokens of a service, without asking it."""
    if not arguments.url.startswith("https://"):
        raise WrongUsage(f"invalid URL {arguments.url!r}; expected https://…")
    keys = None
    if arguments.keys is not None:
        from runvitals.server.sign_on.tokens import checked_keys

        with open(arguments.keys, encoding="utf-8") as file:
            keys = checked_keys(file.read(_MAX_KEYS_FILE))
    issuer = accounts.jwt_issuers.create(
        arguments.name, arguments.url, arguments.audience, by, now_ms, pasted_keys=keys
    )
    return Outcome(f"tokens of {issuer.name} are accepted; its ID is {issuer.id}", issuer)


def revoke_guest_link(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> Outcome:
    """Revoke a guest link to any project or run, by its id alone."""
    accounts.guest_links.revoke(arguments.link, by, now_ms)
    return Outcome(f"the guest link {arguments.link} no longer works")


def read_password(prompt: str) -> str:
    """A password from the terminal, or the first line of stdin: never an argument, which `ps` shows.

    Raises:
        ValueError: the two that were typed differ.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    import getpass

    password = getpass.getpass(f"{prompt}: ")
    if getpass.getpass("The same again: ") != password:
        raise ValueError("the two passwords differ")
    return password


def _hashed(name: str, addresses: tuple[str, ...]) -> str:
    from runvitals.server.accounts.passwords import Passwords, password_problem

    password = read_password("Password")
    problem = password_problem(password, name=name, addresses=addresses)
    if problem is not None:
        raise ValueError(problem)
    return Passwords().hash(password)


def _secret(secret: str, key: KeyRow) -> Outcome:
    """The key alone for a terminal or a script's variable; with what is known of it as JSON."""
    return Outcome(secret, {"key": secret, "public_id": key.public_id, "id": key.id})


def _notices(accounts: AccountStore, now_ms: int) -> Notices:
    """Return what sends mail to users about an action on the database: a server delivers it."""
    from runvitals.server.mail.notices import Notices

    return Notices(accounts, accounts.mail_drafts, now_ms)


def _user(accounts: AccountStore, name: str) -> UserRow:
    """Return a user by name; a LookupError names the users that there are."""
    from runvitals.store.errors import NotFound

    try:
        return accounts.users.by_name(name)
    except NotFound as error:
        names = (row.user.name for row in accounts.users.listed())
        raise LookupError(f"{error}; {expected(names, 'runvitals user list')}") from None


def _team(accounts: AccountStore, name: str) -> TeamRow:
    """Return a team by name that is not in the trash; a LookupError names those there are."""
    teams = {row.name: row for row in accounts.teams.all() if row.deleted_ms is None}
    team = teams.get(name.lower())
    if team is None:
        raise LookupError(f"there is no team {name!r}; {expected(teams, 'runvitals team list')}")
    return team
