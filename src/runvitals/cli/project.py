"""`runvitals project`: the projects of a server, who sees them, their members and guest links."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_store import DESCRIPTION, add_actions, finish, run_on_accounts
from runvitals.cli.argument_types import time_ms

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor
    from runvitals.store.metadata.accounts.owned_projects import ProjectDetail

VISIBILITIES = ("private", "restricted", "team", "organisation", "public", "open")
_ON_A_PROJECT = (
    ("show", "what is known about a project"),
    ("rename", "rename a project; its old addresses lead there for 90 days"),
    ("visibility", "change who sees a project"),
    ("members", "list who was added to a project"),
    ("add", "add a member of the team to a project"),
    ("remove", "remove a member from a project, not from the team"),
    ("links", "list the guest links to a project"),
    ("link", "print the path of a guest link to a project, once"),
    ("transfer", "give a project to another team, or to a user"),
    ("delete", "move a project and its runs to the trash"),
    ("restore", "take a project out of the trash"),
)


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "project",
        help="create, share, transfer and delete the projects of a server",
        description=DESCRIPTION,
    )
    actions = add_actions(parser)
    create = actions.add_parser("create", help="create an empty project; runs make theirs by themselves")
    create.add_argument("project", metavar="TEAM/NAME")
    create.add_argument("--owner", metavar="USER", help="may change it, besides administrators of the team")
    create.add_argument("--visibility", choices=VISIBILITIES, help="default: that of the team")
    create.add_argument("--description", default="")
    listed = actions.add_parser("list", help="list the projects of a team or user")
    listed.add_argument("entity", metavar="TEAM")
    listed.add_argument("--deleted", action="store_true", help="those in the trash")
    revoke = actions.add_parser("revoke", help="revoke a guest link")
    revoke.add_argument("link", metavar="ID", type=int, help="the ID column of `links`")
    found = {}
    for name, text in _ON_A_PROJECT:
        found[name] = actions.add_parser(name, help=text)
        found[name].add_argument("project", metavar="TEAM/NAME")
    found["rename"].add_argument("name", metavar="NAME")
    found["visibility"].add_argument("visibility", choices=VISIBILITIES)
    for name in ("add", "remove"):
        found[name].add_argument("user", metavar="USER")
    found["add"].add_argument("--role", help="viewer, member or admin; default: the role in the team")
    found["link"].add_argument("--expires", metavar="AGE", type=time_ms, help="7d, 12h; default: never")
    found["transfer"].add_argument("entity", metavar="TEAM", help="a team or user")
    found["delete"].add_argument("--confirm", metavar="NAME", required=True, help="the project's name again")
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


def _of(accounts: AccountStore, arguments: argparse.Namespace) -> ProjectDetail:
    entity, name = _both_names(arguments.project)
    return accounts.owned_projects.named(entity, name)


def _both_names(path: str) -> tuple[str, str]:
    entity, slash, name = path.partition("/")
    if not (entity and slash and name):
        raise ValueError(f"invalid project {path!r}; expected TEAM/NAME")
    return entity, name


def _entity_id(accounts: AccountStore, name: str) -> int:
    entity_id = accounts.entity_id(name)
    if entity_id is None:
        raise LookupError(f"there is no team or user {name!r}")
    return entity_id


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    entity, name = _both_names(arguments.project)
    entity_id = _entity_id(accounts, entity)
    owner_id = None if arguments.owner is None else accounts.users.by_name(arguments.owner).id
    if arguments.visibility is not None:
        _check_visibility(accounts, entity_id, owner_id, None, arguments.visibility)
    return accounts.owned_projects.create(
        entity_id,
        name,
        by,
        now_ms,
        owner_id=owner_id,
        visibility=arguments.visibility,
        description=arguments.description,
    )


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.project_members.of_entity(_entity_id(accounts, arguments.entity), arguments.deleted)


def _show(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return _of(accounts, arguments)


def _rename(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.owned_projects.update(_of(accounts, arguments).id, by, now_ms, name=arguments.name)
    return None


def _visibility(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    row = _of(accounts, arguments)
    _check_visibility(accounts, row.entity_id, row.owner_id, row.visibility, arguments.visibility)
    accounts.owned_projects.update(row.id, by, now_ms, visibility=arguments.visibility)
    return None


def _check_visibility(
    accounts: AccountStore, entity_id: int, owner_id: int | None, before: str | None, wanted: str
) -> None:
    from runvitals.accounts.organisation_settings import policies_of
    from runvitals.accounts.resources import Entity, Project, Visibility
    from runvitals.accounts.visibility import visibility_problem

    facts = accounts.entity(entity_id)
    if facts is None:
        raise LookupError(f"there is no team or user with id {entity_id}")
    entity = Entity(facts.id, facts.owner_id, public_projects=facts.public_projects)
    present = Project(0, entity, Visibility(before or "team"), owner_id)
    problem = visibility_problem(present, Visibility(wanted), policies_of(accounts.settings.all()))
    if problem is not None:
        raise ValueError(problem)


def _members(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.owned_projects.members(_of(accounts, arguments).id)


def _add(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    user_id = accounts.users.by_name(arguments.user).id
    project_id = _of(accounts, arguments).id
    accounts.project_members.add(project_id, by, now_ms, user_id=user_id, role=arguments.role)
    return None


def _remove(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    user_id = accounts.users.by_name(arguments.user).id
    accounts.project_members.remove(_of(accounts, arguments).id, by, now_ms, user_id=user_id)
    return None


def _links(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.guest_links.all(now_ms, project_id=_of(accounts, arguments).id)


def _link(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    expires_ms = None if arguments.expires is None else now_ms + arguments.expires
    secret, row = accounts.guest_links.create(
        by, now_ms, project_id=_of(accounts, arguments).id, expires_ms=expires_ms
    )
    # After `#`, so that no log and no other site gets to see the secret.
    return {"path": f"/-/shared#{secret}", "id": row.id, "expires_ms": row.expires_ms}


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.guest_links.revoke(arguments.link, by, now_ms)
    return None


def _transfer(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    row, target = _of(accounts, arguments), _entity_id(accounts, arguments.entity)
    facts = accounts.entity(target)
    if facts is not None and facts.owner_id is not None and row.visibility == "restricted":
        raise ValueError("a restricted project must be opened to its team first")
    accounts.project_members.transfer(row.id, target, by, now_ms)
    return None


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    row = _of(accounts, arguments)
    if arguments.confirm != row.name:
        raise ValueError(f"--confirm {arguments.confirm!r} is not the name {row.name!r}")
    return {"runs": accounts.owned_projects.trash(row.id, by, now_ms)}


def _restore(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    row = _of(accounts, arguments)
    if row.deleted_ms is None:
        raise ValueError(f"the project {row.name!r} is not in the trash")
    return {"runs": accounts.owned_projects.restore(row.id, by, now_ms)}


_ACTIONS = {
    "create": _create,
    "list": _list,
    "show": _show,
    "rename": _rename,
    "visibility": _visibility,
    "members": _members,
    "add": _add,
    "remove": _remove,
    "links": _links,
    "link": _link,
    "revoke": _revoke,
    "transfer": _transfer,
    "delete": _delete,
    "restore": _restore,
}
