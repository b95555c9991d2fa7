"""The request that stands for each permission of permissions.csv, and how to undo what it does."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from runvitals.server.artifacts.storage.protection import Changer
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.sweeps.sources import from_json
from runvitals.server.sweeps.storage.rows import NewSweep
from tests.server.access.organisation import NOW, ServedOrganisation
from tests.server.database.artifacts.making import logged

Undo = Callable[[ServedOrganisation], None]
_numbers = itertools.count()


def _nothing(served: ServedOrganisation) -> None:
    """There is nothing to undo."""


def _no_names(served: ServedOrganisation) -> dict[str, str]:
    return {}


def _succeeded(response: httpx.Response) -> bool:
    return response.status_code < 300


@dataclass(frozen=True)
class Call:
    """A request, with `{run}`, `{project}`, `{entity}`, `{team}` and `{member}` filled in from its target.

    Attributes:
        prepare: creates what the request is about; returns further names to fill in.
        body: the JSON; its texts are filled in too, and `{number}` by a new number.
        undo: restores what was there before.
        allowed: whether an answer is that of one who may.
    """

    method: str
    path: str
    body: dict[str, Any] | None = None
    undo: Undo = _nothing
    allowed: Callable[[httpx.Response], bool] = field(default=_succeeded)
    prepare: Callable[[ServedOrganisation], dict[str, str]] = _no_names


def filled(value: Any, target: dict[str, str]) -> Any:
    """A path or body with the names of the target in it."""
    if isinstance(value, dict):
        return {name: filled(part, target) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, target) for part in value]
    return value.format(number=next(_numbers), **target) if isinstance(value, str) else value


def logged_run(project: str, entity: str) -> dict[str, Any]:
    """An envelope of a new run."""
    run = f"cell-{next(_numbers)}"
    return {
        "run": run,
        "writer": f"monitor.{run}",
        "seq": 1,
        "project": project,
        "entity": entity,
        "about": {"interval_s": 3600},
        "keys": ["cpu"],
        "t": [NOW],
        "v": [[1.0]],
    }


def _member_restored(served: ServedOrganisation) -> None:
    members = served.accounts.members
    if "dan" in {member.name for member in members.of_team("vision")}:
        members.set_role("vision", "dan", "member", CLI, NOW)
    else:
        members.add("vision", "dan", "member", CLI, NOW)
    if "dora" not in {member.name for member in members.of_team("vision")}:
        members.add("vision", "dora", "admin", CLI, NOW)


def _runs_restored(served: ServedOrganisation) -> None:
    runs = served.metadata_store.runs
    trashed = runs.trashed_before(NOW * 2)
    runs.restore([number for number in trashed if runs.get([number], NOW)[number].uid != "deleted-bob"], NOW)


def _projects_restored(served: ServedOrganisation) -> None:
    projects = served.accounts.owned_projects
    for name in ("team", "carols"):
        number = served.metadata_store.projects.id(name)
        projects.restore(number, CLI, NOW)


def _runs_moved_back(served: ServedOrganisation) -> None:
    home = served.metadata_store.projects.id("team")
    for author in ("bob", "carol"):
        run = served.metadata_store.runs.find(f"team-{author}", NOW)
        assert run is not None
        served.accounts.owned_projects.move_run(run.id, home, CLI, NOW)


def _team_restored(served: ServedOrganisation) -> None:
    served.accounts.teams.restore("vision", CLI, NOW)


def _settings_reset(served: ServedOrganisation) -> None:
    served.accounts.settings.put({"support_contact": None}, CLI, NOW)


def _destinations_deleted(served: ServedOrganisation) -> None:
    team = served.accounts.teams.by_name("vision").id
    for row in served.metadata_store.alerts.destinations.of_team("slack", team):
        served.metadata_store.alerts.destinations.delete("slack", team, row.id, CLI, NOW)


def _webhooks_deleted(served: ServedOrganisation) -> None:
    team = served.accounts.teams.by_name("vision").id
    for row in served.metadata_store.alerts.destinations.of_team("webhook", team):
        served.metadata_store.alerts.destinations.delete("webhook", team, row.id, CLI, NOW)


def _deletion_called_off(served: ServedOrganisation) -> None:
    served.accounts.users.cancel_deletion(served.users["selma"], CLI, NOW)


def _new_sweep(served: ServedOrganisation) -> dict[str, str]:
    """A sweep of bob in the project `team`."""
    source = from_json({"method": "random", "parameters": {"lr": {"min": 0.1, "max": 0.2}}})
    project_id, author = served.metadata_store.projects.id("team"), served.users["bob"]
    new = NewSweep(project_id, source.yaml, source.json, seed=1, author_id=author)
    return {"sweep": served.metadata_store.sweeps.sweeps.create(new, NOW).name}


def _reports_restored(served: ServedOrganisation) -> None:
    for number in served.reports.values():
        served.accounts.reports.restore(number)


def _unlinked(served: ServedOrganisation) -> dict[str, str]:
    """Unlink all versions of `team`: a project whose versions registries have is not deleted."""
    artifacts, project_id = served.metadata_store.artifacts, served.metadata_store.projects.id("team")
    for size in artifacts.collections.sizes(project_id):
        named = artifacts.collections.named(project_id, size.name)
        assert named is not None
        for link in artifacts.dependents.of_collection(named.id).links:
            artifacts.links.unlink(link.version.id, link.collection.id, NOW, Changer(None, True))
    return {}


def _new_artifact(served: ServedOrganisation) -> dict[str, str]:
    store, name = served.metadata_store, f"artifact-{next(_numbers)}"
    logged(store, store.projects.id("team"), {"a": name.encode()}, name)
    return {"artifact": name}


def _shows_address(response: httpx.Response) -> bool:
    return response.status_code == 200 and "dan@lab.example" in response.text


_PROJECT = "/entities/{entity}/projects/{project}"
_MEMBER = "/teams/{team}/members/{member}"
_ARTIFACT = f"{_PROJECT}/artifacts/weights/latest"
_SWEEP = f"{_PROJECT}/sweeps/{{sweep}}"
_REGISTRY = "/teams/{team}/registries/model"
_DIGITS = f"{_REGISTRY}/collections/digits"


def _admin_removed(served: ServedOrganisation) -> None:
    table = served.metadata_store.registries
    for admin in table.admins(_registry_id(served)):
        if admin.name == "dan":
            table.remove_admin(_registry_id(served), "dan", NOW, Changer(CLI))


def _unprotected(served: ServedOrganisation) -> None:
    served.metadata_store.registries.unprotect(_registry_id(served), "gold", NOW, Changer(CLI))


def _more_unlinked(served: ServedOrganisation) -> None:
    collections = served.metadata_store.artifacts.collections
    more = collections.named(_registry_id(served), "more")
    assert more is not None
    collections.delete(more.id)


def _registry_id(served: ServedOrganisation) -> int:
    team_id = served.accounts.teams.by_name("vision").id
    row = served.metadata_store.registries.named(team_id, "model")
    assert row is not None
    return row.id


_LABELS = {"name": "Labeller {number}", "base": "viewer", "permissions": ["run:update"], "description": ""}

CALLS: Final[dict[str, Call]] = {
    "account:read": Call("GET", "/account/emails"),
    "account:update": Call("PATCH", "/account/profile", {"bio": "runs"}),
    "account:emails": Call("POST", "/account/emails", {"address": "selma{number}@lab.example"}),
    "account:security": Call("POST", "/account/second-factor", {}),
    "account:delete": Call("DELETE", "/account", {"confirm": "selma", "wait_days": 7}, _deletion_called_off),
    "team:profile": Call("GET", "/teams/{team}/profile"),
    "team:read_settings": Call("GET", "/teams/{team}/settings"),
    "team:update": Call("PATCH", "/teams/{team}", {"company": "Lab"}),
    "team:update_privacy": Call("PATCH", "/teams/{team}/privacy", {"hidden": False}),
    "team:create": Call("POST", "/teams", {"name": "fresh-{number}"}),
    "team:delete": Call("DELETE", "/teams/{team}", {"confirm": "{team}"}, _team_restored),
    "member:read_email": Call("GET", "/teams/{team}/members", allowed=_shows_address),
    "member:invite": Call(
        "POST",
        "/teams/{team}/invitations",
        {"people": ["new{number}@lab.example"], "role": "{role}"},
        allowed=lambda answer: answer.status_code == 200 and '"state":"invited"' in answer.text,
    ),
    "member:remove": Call("DELETE", _MEMBER, {}, _member_restored),
    "member:update_role": Call("PATCH", _MEMBER, {"role": "viewer"}, _member_restored),
    "org:bucket_manage": Call("GET", "/organisation/buckets"),
    "storage:read": Call("GET", "/teams/{team}/storage"),
    "project:read": Call("GET", _PROJECT),
    "project:read_visibility": Call("GET", "/teams/{team}/projects?fields=visibility"),
    "project:update": Call("PATCH", _PROJECT, {"description": "All digits"}),
    "project:update_overview": Call("PATCH", _PROJECT, {"overview": "# Digits"}),
    "project:delete": Call("DELETE", _PROJECT, {}, _projects_restored, prepare=_unlinked),
    "run:read": Call("GET", "/runs/{run}"),
    "run:create": Call("POST", "/ingest"),
    "run:update": Call("PATCH", "/runs/{run}", {"notes": "x"}),
    "run:stop": Call("POST", "/runs/{run}/stop", {}),
    "run:delete": Call("DELETE", "/runs/{run}", {}, _runs_restored),
    "run:move": Call(
        "POST", "/runs/{run}/move", {"entity": "{entity}", "project": "organisation"}, _runs_moved_back
    ),
    "artifact:read": Call("GET", _ARTIFACT),
    "artifact:download": Call("GET", f"{_ARTIFACT}/content?path=weights.bin"),
    "artifact:create": Call(
        "POST", f"{_PROJECT}/artifacts/portfolio-{{number}}", {"artifact": "{project}/weights"}
    ),
    "artifact:update": Call("PATCH", f"{_PROJECT}/artifacts/weights", {"ttl_s": None}),
    "artifact:delete": Call("DELETE", f"{_PROJECT}/artifacts/{{artifact}}", prepare=_new_artifact),
    "report:read": Call("GET", "/reports/{report}"),
    "report:create": Call("POST", f"{_PROJECT}/reports", {"title": "Report {number}", "publish": True}),
    "report:update": Call("PATCH", "/reports/{report}", {"revision": "1", "description": "cell"}),
    "report:delete": Call("DELETE", "/reports/{report}", None, _reports_restored),
    "report:follow": Call("PUT", "/reports/{report}/follow"),
    "report:share_public": Call("POST", "/reports/{report}/links", {}),
    "report:comment": Call("POST", "/reports/{report}/comments", {"text": "Why {number}?"}),
    "registry:read": Call("GET", f"{_DIGITS}/versions"),
    "registry:download": Call("GET", f"{_DIGITS}/versions/latest/files/weights.bin"),
    "registry:link": Call(
        "POST",
        f"{_REGISTRY}/collections/more/versions",
        {"artifact": "{project}/weights"},
        _more_unlinked,
    ),
    "registry:alias": Call("PUT", f"{_DIGITS}/aliases/best", {"version": "v0"}),
    "registry:manage_admins": Call("PUT", f"{_REGISTRY}/admins/dan", undo=_admin_removed),
    "registry:protected_alias": Call("PUT", f"{_REGISTRY}/protected-aliases/gold", undo=_unprotected),
    "sweep:control": Call("POST", f"{_SWEEP}/pause", prepare=_new_sweep),
    "sweep:delete": Call("DELETE", _SWEEP, prepare=_new_sweep),
    "workspace:read": Call("GET", "/views?project={project}&entity={entity}"),
    "workspace:update": Call(
        "POST",
        "/views",
        {
            "kind": "workspace",
            "name": "view {number}",
            "project": "{project}",
            "entity": "{entity}",
            "data": {},
            "published": True,
        },
    ),
    "slack:manage": Call(
        "POST",
        "/teams/{team}/slack-destinations",
        {
            "channel": "#training {number}",
            "webhook_url": "https://hooks.slack.com/services/T0001/B0001/abcdefgh",
        },
        _destinations_deleted,
    ),
    "webhook:manage": Call(
        "POST",
        "/teams/{team}/webhooks",
        {"name": "hook {number}", "url": "https://hooks.lab.example/runs"},
        _webhooks_deleted,
    ),
    "org:settings": Call(
        "PUT", "/organisation/settings", {"support_contact": "help@lab.example"}, _settings_reset
    ),
    "org:member_read": Call("GET", "/organisation/members"),
    "org:member_update": Call("PATCH", "/organisation/members/dan", {"access": "full"}),
    "org:role_manage": Call("POST", "/organisation/roles", _LABELS),
    "billing:read": Call("GET", "/usage"),
    "billing:manage": Call(
        "POST", "/billing/rates", {"category": "energy", "price": 0.3, "valid_from": "2030-01-01"}
    ),
    "billing:assign": Call("PATCH", "/organisation/members/dan", {"billing_role": "none"}),
    "billing:settle": Call("PUT", "/billing/settlement", {"purchase_order": "PO 7"}),
    "usage:read_team": Call("GET", "/usage?entity={entity}"),
}
"""Permissions of the rows that have a route."""

CUSTOM_ROLE: Final = Call("PATCH", _MEMBER, {"custom_role": "Tagger"}, _member_restored)
ADMIN_ROLE: Final = Call("PATCH", _MEMBER, {"role": "admin"}, _member_restored)
"""`member:update_role` on a custom member, and on an admin member."""

_ARTIFACTS: Final = "tests/server/doors/wandb/test_artifacts.py"
ELSEWHERE: Final = {
    "artifact:alias": _ARTIFACTS,
}
"""Permissions that only routes for the clients of other systems need, and where these are tested."""
