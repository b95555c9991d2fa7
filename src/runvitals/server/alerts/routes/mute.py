"""`/mute/{link}`: what a link in a mail mutes, without signing in.

The link is in the mail's `List-Unsubscribe`, so a mail program may POST to it by itself (RFC 8058).
"""

from __future__ import annotations

from typing import Annotated

from fastapi import HTTPException, Path, Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from runvitals.server.access.actions import PUBLIC
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs, with_accounts
from runvitals.server.account_services import AccountServices
from runvitals.server.alerts.audience import may_read_run
from runvitals.server.alerts.mute_links import PURPOSE, MuteLink, mute_link
from runvitals.server.alerts.storage.alert_settings import AlertSubject, Scope
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.router import Router
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.server.service_parameters import TheAccess, TheServices

router = Router()
LinkText = Annotated[str, Path(max_length=100)]


class Wish(RequestBody):
    """A scope to mute, or with `on` false to unmute."""

    scope: Scope = "project"
    on: bool = True


class MuteSchema(ResponseBody):
    """The scopes that a link can mute, named as in the mail."""

    entity: str
    project: str
    run: str
    scopes: list[Scope]
    muted: list[Scope]


@router.get("/mute/{link}", needs(PUBLIC), with_accounts(), response_model=MuteSchema)
def what_is_muted(link: LinkText, access: TheAccess, services: TheServices) -> MuteSchema:
    """Return what the link can mute, and what is muted."""
    return _to_schema(access, *_open_link(link, access, services))


@router.post("/mute/{link}", needs(PUBLIC), with_accounts(), response_model=MuteSchema)
async def mute(link: LinkText, request: Request, access: TheAccess, services: TheServices) -> MuteSchema:
    """Mute the run, its project or its team for the user of the link; by a mail program: the project."""
    wish = Wish()
    if request.headers.get("content-type", "").startswith("application/json"):
        try:
            wish = Wish.model_validate_json(await request.body())
        except ValidationError as error:
            raise HTTPException(422, "expected {scope: run, project or team, on: true or false}") from error
    opened, run = await run_in_threadpool(_open_link, link, access, services)
    target = _targets(access, run).get(wish.scope)
    if target is None:
        raise HTTPException(422, f"the run belongs to no {wish.scope}")
    settings = access.metadata_store.alerts.settings
    await run_in_threadpool(settings.except_from, opened.user_id, target, "off" if wish.on else None)
    return await run_in_threadpool(_to_schema, access, opened, run)


def _open_link(link: str, access: AccessControl, services: AccountServices) -> tuple[MuteLink, RunPlace]:
    try:
        opened = mute_link(link, services.box.derived_key(PURPOSE))
    except ValueError:
        raise HTTPException(404, "this link is not valid") from None
    run = access.metadata_store.runs.place(opened.run_id)
    # A run that was moved has names that the mail did not contain.
    if run is None or run.entity_id is None or not may_read_run(access.directory, opened.user_id, run):
        raise HTTPException(404, "what this link was about is not there any more")
    return opened, run


def _targets(access: AccessControl, run: RunPlace) -> dict[Scope, AlertSubject]:
    assert run.entity_id is not None
    targets: dict[Scope, AlertSubject] = {
        "run": AlertSubject("run", run.run_id),
        "project": AlertSubject("project", run.project_id),
    }
    if access.directory.entity(run.entity_id).owner_id is None:
        targets["team"] = AlertSubject("team", run.entity_id)
    return targets


def _to_schema(access: AccessControl, opened: MuteLink, run: RunPlace) -> MuteSchema:
    targets = _targets(access, run)
    modes = access.metadata_store.alerts.settings.modes(
        [opened.user_id], {scope: target.id for scope, target in targets.items()}
    )
    assert run.entity is not None  # see `_open_link`
    muted = [scope for scope, mode in modes.get(opened.user_id, {}).items() if mode == "off"]
    return MuteSchema(
        entity=run.entity, project=run.project, run=run.uid, scopes=list(targets), muted=sorted(muted)
    )
