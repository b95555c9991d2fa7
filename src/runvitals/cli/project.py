"""`runvitals project`: the projects of a server, who sees them, their members and guest links."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, when
from runvitals.cli.account_store import (
    AccountApi,
    Call,
    Work,
    add_actions,
    check_confirmation,
    finish,
    link,
    now_ms,
    run_on_accounts,
    user_named,
)
from runvitals.cli.argument_types import row_id, time_ms

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.projects.storage.owned_projects import ProjectDetail

_PROJECT = "/entities/{entity}/projects/{project}"
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
    """Add `runvitals project` to the parser."""
    actions = add_actions(subparsers, "project")
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
    finish(actions, by_key=_CALLS.keys() - {"transfer"})


def run(arguments: argparse.Namespace) -> int:
    """Run an action on projects of a team or user; return the exit code."""
    return run_on_accounts(arguments, _WORKS, _CALLS)


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
        _check_visibility(accounts, entity_id, owner_id, arguments.visibility)
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
    return Listing(rows, _PROJECTS, _no_projects(arguments))


def _list_at_server(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    path = "/entities/{entity}/projects"
    parameters = [("deleted", "true")] if arguments.deleted else []
    projects = api.every(path, "projects", parameters, entity=arguments.entity)
    return Listing([SimpleNamespace(**project) for project in projects], _PROJECTS, _no_projects(arguments))


def _no_projects(arguments: argparse.Namespace) -> str:
    where = "in the trash" if arguments.deleted else "yet; the first run of a project creates it"
    return f"{arguments.entity} has no projects {where}"


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


def _rename(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    project = api.send("PATCH", _PROJECT, {"name": arguments.name}, **_names(api, arguments))
    return Outcome(f"the project is called {project['name']} now")


def _visibility(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    api.send("PATCH", _PROJECT, {"visibility": arguments.visibility}, **_names(api, arguments))
    return Outcome(f"the project {arguments.project} is {arguments.visibility} now")


def _names(api: AccountApi, arguments: argparse.Namespace) -> dict[str, str]:
    """The names of a project and of its team or user; a server checks itself that there is one.

    Raises:
        LookupError: there is no such project.
    """
    if api.accounts is not None:
        row = _of(api.accounts, arguments)
        return {"entity": row.entity, "project": row.name}
    entity, name = _both_names(arguments.project)
    return {"entity": entity, "project": name}


def _check_visibility(accounts: AccountStore, entity_id: int, owner_id: int | None, wanted: str) -> None:
    from runvitals.server.access.decisions.policies import visibility_problem
    from runvitals.server.access.resources import Entity, Project, Visibility
    from runvitals.server.organisation.settings import policies_of

    facts = accounts.entity(entity_id)
    if facts is None:
        raise LookupError(f"there is no team or user with id {entity_id}")
    entity = Entity(facts.id, facts.owner_id, public_projects=facts.public_projects)
    new = Project(0, entity, Visibility.TEAM, owner_id)
    problem = visibility_problem(new, Visibility(wanted), policies_of(accounts.settings.all()))
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


def _remove(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    user, names = api.user(arguments.user), _names(api, arguments)
    api.send("DELETE", f"{_PROJECT}/members/{{member}}", member=user, **names)
    return Outcome(f"{arguments.user} was removed from the project {arguments.project}")


def _links(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    rows = accounts.guest_links.all(now_ms, project_id=_of(accounts, arguments).id)
    return Listing(rows, _LINKS, f"there are no guest links to the project {arguments.project}")


def _link(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    expires_ms = None if arguments.expires is None else now_ms() + arguments.expires
    made = api.send("POST", f"{_PROJECT}/links", {"expires_ms": expires_ms}, **_names(api, arguments))
    record = {"path": made["url"], "id": made["id"], "expires_ms": made["expires_ms"]}
    return Outcome(made["url"] if api.accounts is None else link(api.accounts, made["url"]), record)


def _revoke(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    accounts.guest_links.revoke(arguments.link, by, now_ms)
    return Outcome(f"the guest link {arguments.link} no longer works")


def _transfer(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    names = _names(api, arguments)
    api.send("POST", f"{_PROJECT}/transfer", {"entity": arguments.entity}, **names)
    return Outcome(f"the project {names['project']} belongs to {arguments.entity} now")


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    names = _names(api, arguments)
    check_confirmation(arguments, names["project"])
    runs = api.send("DELETE", _PROJECT, **names)["runs"]
    how = f"`runvitals project restore {arguments.project}` takes it back"
    return Outcome(f"the project is in the trash, with {runs} runs; {how}", {"runs": runs})


def _restore(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    runs = api.send("POST", f"{_PROJECT}/restore", **_names(api, arguments))["runs"]
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
_WORKS: dict[str, Work] = {
    "create": _create,
    "list": _list,
    "show": _show,
    "members": _members,
    "add": _add,
    "links": _links,
    "revoke": _revoke,
}
_CALLS: dict[str, Call] = {
    "list": _list_at_server,
    "rename": _rename,
    "visibility": _visibility,
    "remove": _remove,
    "link": _link,
    "transfer": _transfer,
    "delete": _delete,
    "restore": _restore,
}
