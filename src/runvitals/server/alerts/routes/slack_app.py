"""`/organisation/slack-app`: the app of Slack by which users choose channels at Slack."""

from __future__ import annotations

from fastapi import HTTPException
from pydantic import Field

from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.alerts.slack_app import CALLBACK, ID_SETTING, SECRET_SETTING, sealed_slack_secret
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.organisation.routes.changed_settings import enforced_by, put_settings
from runvitals.server.outside_services import OutsideServices
from runvitals.server.service_parameters import TheAccess, TheNotices, TheOutsideServices, TheRequester

router = Router()
_PATH = "/organisation/slack-app"


class SlackCredentials(RequestBody):
    """The id and secret of an app of Slack."""

    client_id: str = Field(max_length=100, pattern=r"^[0-9]+\.[0-9]+$", description="Such as 123456.789012.")
    client_secret: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        pattern=r"^[!-~]+$",
        description="Left out: the present one stays, for the same client id.",
    )


class SlackAppSchema(ResponseBody):
    """The app of Slack, without its secret."""

    configured: bool
    client_id: str
    has_secret: bool
    redirect_url: str | None = Field(description="What the app needs; None: the server's URL is not known.")
    editable: bool
    enforced_by: str | None = Field(description="What sets the app, so that it cannot be changed here.")


@router.get(_PATH, needs("org:settings"), response_model=SlackAppSchema)
def slack_app(access: TheAccess, outside: TheOutsideServices) -> SlackAppSchema:
    """Which app of Slack is used, without its secret, and the redirect URL that it needs."""
    return _slack_app(access, outside)


@router.put(_PATH, needs("org:settings"), response_model=SlackAppSchema)
def put_slack_app(
    body: SlackCredentials,
    access: TheAccess,
    requester: TheRequester,
    notices: TheNotices,
    outside: TheOutsideServices,
) -> SlackAppSchema:
    """Set the id and the secret of the app. The secret is encrypted, and never shown."""
    changes = {ID_SETTING: body.client_id}
    if body.client_secret is not None:
        changes[SECRET_SETTING] = sealed_slack_secret(body.client_secret, outside.box)
    elif not _has_secret(access) or access.accounts.settings.all().get(ID_SETTING) != body.client_id:
        raise InvalidFields({"client_secret": "the secret of this client id is missing"})
    _check_editable(access)
    put_settings(access, requester, notices, changes)
    return _slack_app(access, outside)


@router.delete(_PATH, needs("org:settings"), status_code=204)
def remove_slack_app(access: TheAccess, requester: TheRequester, notices: TheNotices) -> None:
    """Forget the app and its secret. Channels that were connected stay."""
    _check_editable(access)
    put_settings(access, requester, notices, {ID_SETTING: None, SECRET_SETTING: None})


def _enforced_by(access: AccessControl) -> str | None:
    """Return what sets the id or the secret, so that neither can be changed here."""
    table = access.accounts.settings
    return enforced_by(ID_SETTING, table) or enforced_by(SECRET_SETTING, table)


def _check_editable(access: AccessControl) -> None:
    if by := _enforced_by(access):
        raise HTTPException(409, f"the app of Slack cannot be changed here: it is set by {by}")


def _has_secret(access: AccessControl) -> bool:
    return bool(access.accounts.settings.all().get(SECRET_SETTING))


def _slack_app(access: AccessControl, outside: OutsideServices) -> SlackAppSchema:
    by, url = _enforced_by(access), outside.known_server_url()
    return SlackAppSchema(
        configured=outside.slack_app.configured,
        client_id=outside.slack_app.client_id,
        has_secret=by is not None or _has_secret(access),
        redirect_url=None if url is None else url.rstrip("/") + CALLBACK,
        editable=by is None,
        enforced_by=by,
    )
