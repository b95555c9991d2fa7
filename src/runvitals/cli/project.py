"""`runvitals project`: the projects of a server, who sees them, their members and guest links."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, when
from runvitals.cli.account_store import (
    DESCRIPTION,
    Work,
    add_actions,
    finish,
    link,
    run_on_accounts,
    user_named,
)
from runvitals.cli.argument_types import row_id, time_ms
from runvitals.cli.command_list import COMMANDS

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.projects.storage.owned_projects import ProjectDetail

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
        help=COMMANDS["project"],
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
    revoke.add_argument("link", metavar="ID", type=row_id, help="the ID column of `links`")
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


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    entity, name = _both_names(arguments.project)
    entity_id = _entity_id(accounts, entity)
    owner_id = None if arguments.owner is None else user_named(accounts, arguments.owner).id
    if arguments.visibility is not None:
        _check_visibility(accounts, entity_id, owner_id, None, arguments.visibility)
    row = accounts.owned_projects.create(
        entity_id,
        name,
        by,
        now_ms,
        owner_id=owner_id,
        visibility=arguments.visibility,
        description=arguments.description,
    )
    return Outcome(f"created the project {arguments.project}; it is {row.visibility}", row)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    rows = accounts.project_members.of_entity(_entity_id(accounts, arguments.entity), arguments.deleted)
    where = "in the trash" if arguments.deleted else "yet; the first run of a project creates it"
    return Listing(rows, _PROJECTS, f"{arguments.entity} has no projects {where}")


def _show(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    row = _of(accounts, arguments)
    about = {
        "project": f"{row.entity}/{row.name}",
        "visibility": row.visibility,
        "owner": row.owner,
        "description": row.description,
        "runs": row.runs,
        "newest run": when(row.newest_ms),
        "created": when(row.created_ms),
        "in the trash since": when(row.deleted_ms),
    }
    shown = [f"{name}: {value}" for name, value in about.items() if value not in (None, "")]
    return Outcome("\n".join(shown), row)


def _rename(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    row = accounts.owned_projects.update(_of(accounts, arguments).id, by, now_ms, name=arguments.name)
    return Outcome(f"the project is called {row.name} now")


def _visibility(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    row = _of(accounts, arguments)
    _check_visibility(accounts, row.entity_id, row.owner_id, row.visibility, arguments.visibility)
    accounts.owned_projects.update(row.id, by, now_ms, visibility=arguments.visibility)
    return Outcome(f"the project {arguments.project} is {arguments.visibility} now")


def _check_visibility(
    accounts: AccountStore, entity_id: int, owner_id: int | None, before: str | None, wanted: str
) -> None:
    from runvitals.server.access.resources import Entity, Project, Visibility
    from runvitals.server.access.visibility import visibility_problem
    from runvitals.server.organisation.settings import policies_of

    facts = accounts.entity(entity_id)
    if facts is None:
        raise LookupError(f"there is no team or user with id {entity_id}")
    entity = Entity(facts.id, facts.owner_id, public_projects=facts.public_projects)
    present = Project(0, entity, Visibility(before or "team"), owner_id)
    problem = visibility_problem(present, Visibility(wanted), policies_of(accounts.settings.all()))
    if problem is not None:
        raise ValueError(problem)


def _members(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    rows = accounts.owned_projects.members(_of(accounts, arguments).id)
    return Listing(rows, _MEMBERS, f"nobody was added to the project {arguments.project}")


def _add(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    user_id = user_named(accounts, arguments.user).id
    project_id = _of(accounts, arguments).id
    accounts.project_members.add(project_id, by, now_ms, user_id=user_id, role=arguments.role)
    return Outcome(f"{arguments.user} was added to the project {arguments.project}")


def _remove(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    user_id = user_named(accounts, arguments.user).id
    accounts.project_members.remove(_of(accounts, arguments).id, by, now_ms, user_id=user_id)
    return Outcome(f"{arguments.user} was removed from the project {arguments.project}")


def _links(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    rows = accounts.guest_links.all(now_ms, project_id=_of(accounts, arguments).id)
    return Listing(rows, _LINKS, f"there are no guest links to the project {arguments.project}")


def _link(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    expires_ms = None if arguments.expires is None else now_ms + arguments.expires
    secret, row = accounts.guest_links.create(
        by, now_ms, project_id=_of(accounts, arguments).id, expires_ms=expires_ms
    )
    # After `#`, so that no log and no other site gets to see the secret.
    path = f"/-/shared#{secret}"
    return Outcome(link(accounts, path), {"path": path, "id": row.id, "expires_ms": row.expires_ms})


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    accounts.guest_links.revoke(arguments.link, by, now_ms)
    return Outcome(f"the guest link {arguments.link} no longer works")


def _transfer(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    row, target = _of(accounts, arguments), _entity_id(accounts, arguments.entity)
    facts = accounts.entity(target)
    if facts is not None and facts.owner_id is not None and row.visibility == "restricted":
        raise ValueError("a restricted project must be opened to its team first")
    accounts.project_members.transfer(row.id, target, by, now_ms)
    return Outcome(f"the project {row.name} belongs to {arguments.entity} now")


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    row = _of(accounts, arguments)
    if arguments.confirm != row.name:
        raise ValueError(f"--confirm {arguments.confirm!r} is not the name {row.name!r}")
    runs = accounts.owned_projects.trash(row.id, by, now_ms)
    how = f"`runvitals project restore {arguments.project}` takes it back"
    return Outcome(f"the project is in the trash, with {runs} runs; {how}", {"runs": runs})


def _restore(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    row = _of(accounts, arguments)
    if row.deleted_ms is None:
        raise ValueError(f"the project {row.name!r} is not in the trash")
    runs = accounts.owned_projects.restore(row.id, by, now_ms)
    return Outcome(f"the project is back, with {runs} runs", {"runs": runs})


_PROJECTS: Columns = {
    "PROJECT": lambda project: project.name,
    "VISIBILITY": lambda project: project.visibility,
    "OWNER": lambda project: project.owner,
    "RUNS": lambda project: project.runs,
    "NEWEST RUN": lambda project: when(project.newest_ms),
    "CREATED": lambda project: when(project.created_ms),
}
_MEMBERS: Columns = {
    "NAME": lambda member: member.name,
    "SHOWN AS": lambda member: member.display_name,
    "KIND": lambda member: "service account" if member.service_account else "user",
    "ROLE": lambda member: member.custom_role or member.role or "as in the team",
    "ADDED": lambda member: when(member.created_ms),
}
_LINKS: Columns = {
    "ID": lambda row: row.id,
    "TO": lambda row: "the project" if row.run_id is None else "a run",
    "CREATED": lambda row: when(row.created_ms),
    "EXPIRES": lambda row: when(row.expires_ms),
}
_ACTIONS: dict[str, Work] = {
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
