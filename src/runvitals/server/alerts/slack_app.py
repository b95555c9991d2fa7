"""`SlackApp`: an app of Slack that the operator registered, by which users connect channels (OAuth v2)."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from runvitals.model.durations import MINUTE_MS
from runvitals.server.database.secret_box import SecretBox, SecretUnreadable
from runvitals.server.outbound.fetcher import Fetcher, FetchFailed
from runvitals.server.outbound.policy import Blocked

CALLBACK: Final = "/api/v1/account/slack/callback"
ID_SETTING: Final = "slack_client_id"
SECRET_SETTING: Final = "slack_client_secret"
ID_ENVIRONMENT: Final = "RUNVITALS_SLACK_CLIENT_ID"
SECRET_ENVIRONMENT: Final = "RUNVITALS_SLACK_CLIENT_SECRET"
_AUTHORIZE: Final = "https://slack.com/oauth/v2/authorize"
_ACCESS: Final = "https://slack.com/api/oauth.v2.access"
_SCOPE: Final = "incoming-webhook"
_STATE_MS: Final = 10 * MINUTE_MS
_PURPOSE: Final = "state of the Slack app"
_SECRET_PURPOSE: Final = "setting:slack_client_secret"
_MAX_STATE: Final = 2000


class SlackAppFailed(Exception):
    """A channel could not be connected; the text says why."""


@dataclass(frozen=True, slots=True)
class SlackInstall:
    """Who connects a channel, and for whom. `team_id`: None for the user's own channel."""

    user_id: int
    session_id: int
    team_id: int | None


@dataclass(frozen=True, slots=True)
class SlackChannelUrl:
    """A channel that was chosen at Slack. `url`: of its incoming webhook, a secret."""

    channel: str
    url: str


def sealed_slack_secret(secret: str, box: SecretBox) -> str:
    """Return the client secret as it is stored."""
    return base64.b64encode(box.seal(secret.encode(), _SECRET_PURPOSE)).decode("ascii")


class SlackApp:
    """Sends browsers to Slack and takes what they come back with.

    The state that goes to Slack and back is encrypted. It names the user, the session and the team, so it
    is of no use in another browser.

    Args:
        settings: those of the organisation.
        fetcher: asks Slack.
        server_url: the address of this server; raises ValueError if it is unknown.
        clock: the time now, ms UTC.
    """

    def __init__(
        self,
        settings: Callable[[], Mapping[str, Any]],
        box: SecretBox,
        fetcher: Fetcher,
        server_url: Callable[[], str],
        clock: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._box = box
        self._fetcher = fetcher
        self._server_url = server_url
        self._clock = clock

    @property
    def configured(self) -> bool:
        """Whether the operator registered an app."""
        return bool(self.client_id)

    def start(self, install: SlackInstall) -> str:
        """Return the address at Slack where the user chooses a workspace and a channel.

        Raises:
            SlackAppFailed: there is no app, or the server does not know its own address.
        """
        if not self.configured:
            raise SlackAppFailed("the operator of this server has registered no app of Slack")
        state = {
            "user": install.user_id,
            "session": install.session_id,
            "team": install.team_id,
            "until_ms": self._clock() + _STATE_MS,
        }
        sealed = base64.urlsafe_b64encode(self._box.seal(json.dumps(state).encode(), _PURPOSE)).decode()
        parameters = {
            "client_id": self.client_id,
            "scope": _SCOPE,
            "redirect_uri": self._callback(),
            "state": sealed,
        }
        return f"{_AUTHORIZE}?{urlencode(parameters)}"

    def returned_install(self, state: str, user_id: int | None, session_id: int | None) -> SlackInstall:
        """Return the install for which a browser comes back from Slack.

        Raises:
            SlackAppFailed: it began in another browser, or too long ago.
        """
        try:
            raw = base64.b64decode(state[:_MAX_STATE], altchars=b"-_", validate=True)
            values = json.loads(self._box.open(raw, _PURPOSE))
        except (ValueError, SecretUnreadable):
            raise SlackAppFailed("the answer of Slack belongs to no request of this server") from None
        if self._clock() > values["until_ms"]:
            raise SlackAppFailed("it took longer than ten minutes; begin again")
        if user_id is None or (values["user"], values["session"]) != (user_id, session_id):
            raise SlackAppFailed("it was begun in another browser, or by another user")
        return SlackInstall(values["user"], values["session"], values["team"])

    def channel(self, code: str) -> SlackChannelUrl:
        """Return the channel that the user chose.

        Raises:
            SlackAppFailed: Slack gives none.
        """
        parameters = {
            "client_id": self.client_id,
            "client_secret": self._client_secret(),
            "code": code,
            "redirect_uri": self._callback(),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        try:
            response = self._fetcher.post(_ACCESS, urlencode(parameters).encode(), headers)
            content = json.loads(response.body)
        except (Blocked, FetchFailed, ValueError) as error:
            raise SlackAppFailed(f"Slack could not be asked: {error}") from None
        webhook = content.get("incoming_webhook") if isinstance(content, dict) else None
        if not isinstance(webhook, dict) or content.get("ok") is not True:
            reason = content.get("error") if isinstance(content, dict) else None
            raise SlackAppFailed(f"Slack refused it: {str(reason)[:100]}")
        return SlackChannelUrl(str(webhook.get("channel") or "Slack"), str(webhook.get("url") or ""))

    @property
    def client_id(self) -> str:
        """The id of the app; empty if there is none."""
        return os.environ.get(ID_ENVIRONMENT) or str(self._settings().get(ID_SETTING) or "")

    def _client_secret(self) -> str:
        if from_environment := os.environ.get(SECRET_ENVIRONMENT):
            return from_environment
        try:
            sealed = base64.b64decode(str(self._settings().get(SECRET_SETTING) or ""), validate=True)
            return self._box.open(sealed, _SECRET_PURPOSE).decode()
        except (ValueError, SecretUnreadable):
            raise SlackAppFailed("the client secret of the app cannot be read") from None

    def _callback(self) -> str:
        try:
            return self._server_url().rstrip("/") + CALLBACK
        except ValueError as error:
            raise SlackAppFailed(str(error)) from None
