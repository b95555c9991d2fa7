"""`runvitals project`: the projects of a server, who sees them, their members and guest links."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli import WrongUsage
from runvitals.cli.account_api import (
    AccountApi,
    Call,
    add_actions,
    check_confirmation,
    finish,
    now_ms,
    run_on_accounts,
)
from runvitals.cli.account_output import Columns, Listing, Outcome, when
from runvitals.cli.argument_types import row_id, time_ms
from runvitals.cli.database_actions import revoke_guest_link

_PROJECT = "/entities/{entity}/projects/{project}"
_RECORD = (
    "name",
    "entity",
    "description",
    "overview",
    "visibility",
    "owner",
    "created_ms",
    "deleted_ms",
    "runs",
    "newest_ms",
)
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


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals project`."""
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
    parsers = {}
    for name, text in _ON_A_PROJECT:
        parsers[name] = actions.add_parser(name, help=text)
        parsers[name].add_argument("project", metavar="TEAM/NAME")
    parsers["rename"].add_argument("name", metavar="NAME")
    parsers["visibility"].add_argument("visibility", choices=VISIBILITIES)
    for name in ("add", "remove"):
        parsers[name].add_argument("user", metavar="USER")
    parsers["add"].add_argument("--role", help="viewer, member or admin; default: the role in the team")
    parsers["link"].add_argument("--expires", metavar="AGE", type=time_ms, help="7d, 12h; default: never")
    parsers["transfer"].add_argument("entity", metavar="TEAM", help="a team or user")
    parsers["delete"].add_argument(
        "--confirm", metavar="NAME", required=True, help="the project's name again"
    )
    finish(actions, by_key=_CALLS.keys() - {"transfer"})


def run(arguments: argparse.Namespace) -> int:
    """Run an action on projects of a team or user; return the exit code."""
    return run_on_accounts(arguments, _CALLS, {"revoke": revoke_guest_link})


def _both_names(path: str) -> tuple[str, str]:
    entity, slash, name = path.partition("/")
    if not (entity and slash and name):
        raise WrongUsage(f"invalid project {path!r}; expected TEAM/NAME")
    return entity, name


def _create(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    entity, name = _both_names(arguments.project)
    owner = None if arguments.owner is None else api.user(arguments.owner)
    new = {"name": name, "description": arguments.description, "visibility": arguments.visibility}
    project = api.send("POST", "/entities/{entity}/projects", {**new, "owner": owner}, entity=entity)
    return Outcome(
        f"created the project {arguments.project}; it is {project['visibility']}", _record(project)
    )


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    parameters = [("deleted", "true")] if arguments.deleted else []
    projects = api.every("/entities/{entity}/projects", "projects", parameters, entity=arguments.entity)
    if not projects:
        api.get("/entities/{entity}/defaults", entity=arguments.entity)  # 404 if there is no such team
    return Listing(projects, _PROJECTS, _no_projects(arguments))


def _no_projects(arguments: argparse.Namespace) -> str:
    where = "in the trash" if arguments.deleted else "yet; the first run of a project creates it"
    return f"{arguments.entity} has no projects {where}"


def _show(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    project = api.get(_PROJECT, (), **_names(arguments))
    about = {
        "project": f"{project['entity']}/{project['name']}",
        "visibility": project["visibility"],
        "owner": project["owner"],
        "description": project.get("description"),
        "runs": project.get("runs"),
        "newest run": when(project.get("newest_ms")),
        "created": when(project.get("created_ms")),
        "in the trash since": when(project.get("deleted_ms")),
    }
    lines = [f"{name}: {value}" for name, value in about.items() if value not in (None, "")]
    return Outcome("\n".join(lines), _record(project))


def _record(project: dict[str, Any]) -> dict[str, Any]:
    """Return a project as JSON has it: without what a page needs, and what the requester may do."""
    return {name: project.get(name) for name in _RECORD}


def _rename(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    project = api.send("PATCH", _PROJECT, {"name": arguments.name}, **_names(arguments))
    return Outcome(f"the project is called {project['name']} now")


def _visibility(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    api.send("PATCH", _PROJECT, {"visibility": arguments.visibility}, **_names(arguments))
    return Outcome(f"the project {arguments.project} is {arguments.visibility} now")


def _names(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the names of a project and of its team or user."""
    entity, name = _both_names(arguments.project)
    return {"entity": entity, "project": name}


def _members(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    rows = api.every(f"{_PROJECT}/members", "members", (), **_names(arguments))
    return Listing(rows, _MEMBERS, f"nobody was added to the project {arguments.project}")


def _add(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    new = {"name": api.user(arguments.user), "role": arguments.role}
    api.send("POST", f"{_PROJECT}/members", new, **_names(arguments))
    return Outcome(f"{arguments.user} was added to the project {arguments.project}")


def _remove(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    user, names = api.user(arguments.user), _names(arguments)
    api.send("DELETE", f"{_PROJECT}/members/{{member}}", member=user, **names)
    return Outcome(f"{arguments.user} was removed from the project {arguments.project}")


def _links(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    rows = api.every(f"{_PROJECT}/links", "links", (), **_names(arguments))
    return Listing(rows, _LINKS, f"there are no guest links to the project {arguments.project}")


def _link(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    expires_ms = None if arguments.expires is None else now_ms() + arguments.expires
    link = api.send("POST", f"{_PROJECT}/links", {"expires_ms": expires_ms}, **_names(arguments))
    record = {"path": link["url"], "id": link["id"], "expires_ms": link["expires_ms"]}
    return Outcome(api.link(link["url"]), record)


def _transfer(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    names = _names(arguments)
    api.send("POST", f"{_PROJECT}/transfer", {"entity": arguments.entity}, **names)
    return Outcome(f"the project {names['project']} belongs to {arguments.entity} now")


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    names = _names(arguments)
    check_confirmation(arguments, names["project"])
    runs = api.send("DELETE", _PROJECT, **names)["runs"]
    how = f"`runvitals project restore {arguments.project}` takes it back"
    return Outcome(f"the project is in the trash, with {runs} runs; {how}", {"runs": runs})


def _restore(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    runs = api.send("POST", f"{_PROJECT}/restore", **_names(arguments))["runs"]
    return Outcome(f"the project is back, with {runs} runs", {"runs": runs})


_PROJECTS: Columns = {
    "PROJECT": lambda project: project["name"],
    "VISIBILITY": lambda project: project["visibility"],
    "OWNER": lambda project: project["owner"],
    "RUNS": lambda project: project["runs"],
    "NEWEST RUN": lambda project: when(project["newest_ms"]),
    "CREATED": lambda project: when(project["created_ms"]),
}
_MEMBERS: Columns = {
    "NAME": lambda member: member["name"],
    "SHOWN AS": lambda member: member["display_name"],
    "KIND": lambda member: "service account" if member["service_account"] else "user",
    "ROLE": lambda member: member["custom_role"] or member["role"] or "as in the team",
    "ADDED": lambda member: when(member["created_ms"]),
}
_LINKS: Columns = {
    "ID": lambda row: row["id"],
    "TO": lambda row: "the project",
    "CREATED": lambda row: when(row["created_ms"]),
    "EXPIRES": lambda row: when(row["expires_ms"]),
}
_CALLS: dict[str, Call] = {
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
    "transfer": _transfer,
    "delete": _delete,
    "restore": _restore,
}
