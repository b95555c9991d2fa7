"""Links that let anyone read a report, as W&B's clients make and end them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from runvitals.server.access.actions import Action
from runvitals.server.doors.wandb.context import GraphQLContext, node_id
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.reports.report_views import ReportView, find_report
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.projects.storage.guest_links import GuestLinkRow

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

REPORT_LINKS: Final = Resolvers("report_links")
_PUBLIC: Final = "PUBLIC"
_HANDLE: Final = re.compile(r"link-([0-9]{1,9})-([0-9]{1,9})")
"""What stands for a link whose secret nobody can read again: its report and its id."""


@REPORT_LINKS.field("View", "accessTokens")
def access_tokens(node: ReportView, info: Info) -> list[dict[str, Any]]:
    """Return the valid links to a report, for who may make them."""
    context = info.context
    item = context.access.report_resource(context.requester.principal, node.row)
    if not context.access.may(context.requester, Action.REPORT_SHARE_PUBLIC, item):
        return []
    rows = context.access.accounts.guest_links.all(context.now_ms(), report_id=node.row.id)
    return [{**_token_json(f"link-{node.row.id}-{row.id}"), "projects": [node.project]} for row in rows]


@REPORT_LINKS.field("Mutation", "createAccessToken")
def create_access_token(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Make a link. It shows what the report's panels show, whatever projects the client names."""
    context = info.context
    row, item = find_report(context, input["view_id"])
    what = f"links to report {input['view_id'][:60]!r}"
    context.access.require(context.requester, Action.REPORT_SHARE_PUBLIC, item, what)
    if row.is_draft:
        raise InvalidArgument("nobody else can read a draft: save the report without draft=True first")
    links = context.access.accounts.guest_links
    secret, _row = links.create(context.requester.actor, context.now_ms(), report_id=row.id)
    return {"accessToken": _token_json(secret)}


@REPORT_LINKS.field("Mutation", "updateAccessTokenProjects")
def update_access_token_projects(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """Answer that a link shows what the report's panels show: it always does."""
    return {"success": _find(info.context, input["token"]) is not None}


@REPORT_LINKS.field("Mutation", "revokeAccessToken")
def revoke_access_token(_: None, info: Info, input: dict[str, Any]) -> dict[str, Any]:
    """End a link."""
    context = info.context
    link = _find(context, input["token"])
    if link is None:
        return {"success": False}
    context.access.accounts.guest_links.revoke(link.id, context.requester.actor, context.now_ms())
    context.access.rights_changed()
    return {"success": True}


def _find(context: GraphQLContext, token: str) -> GuestLinkRow | None:
    """Return a link to a report by its secret, or by what stands for it; None if there is none.

    Raises:
        HTTPException: the requester may not make and end links to the report.
    """
    links = context.access.accounts.guest_links
    handle = _HANDLE.fullmatch(token)
    link = None
    if handle is not None:
        find_report(context, node_id("View", int(handle[1])))
        rows = links.all(context.now_ms(), report_id=int(handle[1]))
        link = next((row for row in rows if row.id == int(handle[2])), None)
    else:
        link = links.check(token, context.now_ms())
    if link is None or link.report_id is None:
        return None
    _, item = find_report(context, node_id("View", link.report_id))
    what = f"links to report {link.report_id}"
    context.access.require(context.requester, Action.REPORT_SHARE_PUBLIC, item, what)
    return link


def _token_json(token: str) -> dict[str, Any]:
    return {"token": token, "type": _PUBLIC, "revokedAt": None, "projects": []}
