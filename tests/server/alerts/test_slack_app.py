"""Channels by the operator's app of Slack, at a server that plays Slack's documented endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import Browser, People, serving_people
from tests.server.outbound.site import Answer, Site, serving

HOOK = "https://hooks.slack.com/services/T0001/B0001/abcdefgh"
TEAM = "/teams/vision/slack-destinations"
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def slack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`oauth.v2.access` as Slack documents it; the code `good` is for #training."""
    with serving(tmp_path_factory.mktemp("slack"), "slack.com") as site:

        def access(request: BaseHTTPRequestHandler) -> Answer:
            sent = {name: values[0] for name, values in parse_qs(site.bodies[-1].decode()).items()}
            if (sent["client_id"], sent["client_secret"]) != ("17.42", "the-secret"):
                body: dict[str, object] = {"ok": False, "error": "bad_client_secret"}
            elif sent["code"] != "good":
                body = {"ok": False, "error": "invalid_code"}
            else:
                hook = {"channel": "#training", "channel_id": "C1", "url": HOOK}
                body = {"ok": True, "access_token": "xoxb", "incoming_webhook": hook}
            return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()

        site.answers["/api/oauth.v2.access"] = access
        yield site


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory, slack: Site) -> Iterator[People]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RUNVITALS_SLACK_CLIENT_ID", "17.42")
        patch.setenv("RUNVITALS_SLACK_CLIENT_SECRET", "the-secret")
        patch.setenv("RUNVITALS_URL", "https://runs.example")
        with serving_people(tmp_path_factory.mktemp("server"), fetcher=slack.fetcher()) as people:
            for name in ("ada", "bob"):
                people.add(name)
            ada = people.accounts.users.by_name("ada").id
            people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada)
            people.rights_changed()
            yield people


def begun(browser: Browser, path: str = f"{TEAM}/install") -> str:
    """The state that goes to Slack and back."""
    response = browser.post(path, json={})
    assert response.status_code == 200, response.text
    url = urlsplit(response.json()["url"])
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert f"{url.scheme}://{url.netloc}{url.path}" == "https://slack.com/oauth/v2/authorize"
    assert (query["client_id"], query["scope"]) == ("17.42", "incoming-webhook")
    assert query["redirect_uri"] == "https://runs.example/api/v1/account/slack/callback"
    assert "the-secret" not in response.text
    return query["state"]


def back(browser: Browser, state: str, **more: str) -> str:
    """Where the browser is led when Slack sends it back."""
    parameters = {"state": state, "code": "good", **more}
    response = browser.get("/account/slack/callback", params=parameters)
    assert response.status_code == 302, response.text
    return response.headers["location"]


def test_a_channel_of_a_team_and_an_own_one(people: People) -> None:
    ada = people.browser("ada")
    assert ada.get(TEAM).json()["app"] is True
    for _ in range(2):  # the second one replaces the first
        assert back(ada, begun(ada)) == "/vision/-/settings/integrations?slack=%23training"
    [destinations] = ada.get(TEAM).json()["slack_destinations"]
    assert (destinations["channel"], destinations["shown"]) == ("#training", "hooks.slack.com/…/efgh")
    assert back(ada, begun(ada, "/account/slack/install")) == "/-/settings/notifications?slack=%23training"
    assert ada.get("/account/alerts").json()["slack"]["shown"] == "hooks.slack.com/…/efgh"


def test_the_state_is_of_use_to_who_began_only(people: People) -> None:
    ada, other, bob = people.browser("ada"), people.browser("ada"), people.browser("bob")
    state = begun(ada)
    for browser in (other, bob):
        assert "another%20browser" in back(browser, state)
    assert bob.post(f"{TEAM}/install", json={}).status_code in (403, 404)
    assert "no%20request" in back(ada, state[:-8] + "AAAAAAAA")
    assert "no%20request" in back(ada, "")
    people.now_ms += 11 * MINUTE_MS
    assert "ten%20minutes" in back(ada, state)


def test_what_slack_refuses_is_said_without_the_secret(
    people: People, slack: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = people.browser("ada")
    assert back(ada, begun(ada), code="bad").endswith("slack_error=Slack%20refused%20it%3A%20invalid_code")
    assert "cancelled" in back(ada, begun(ada), code="", error="access_denied")
    monkeypatch.setitem(slack.names, "slack.com", [["10.0.0.1"]])
    refused = back(ada, begun(ada))
    assert "private%20network" in refused
    assert "the-secret" not in refused


SETTINGS = "/organisation/slack-app"
JSON = {"content-type": "application/json"}


@pytest.fixture
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RUNVITALS_SLACK_CLIENT_ID", "RUNVITALS_SLACK_CLIENT_SECRET"):
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("no_variables")
def test_an_administrator_sets_the_app(people: People) -> None:
    rita, ada = people.browser("rita"), people.browser("ada")
    shown = rita.get(SETTINGS).json()
    assert (shown["configured"], shown["has_secret"], shown["editable"]) == (False, False, True)
    assert shown["redirect_url"] == "https://runs.example/api/v1/account/slack/callback"
    assert ada.put(SETTINGS, json={"client_id": "17.42", "client_secret": "x"}).status_code == 403
    assert rita.put(SETTINGS, json={"client_id": "17.42"}).json()["fields"].keys() == {"client_secret"}
    assert rita.put(SETTINGS, json={"client_id": "acme", "client_secret": "x"}).status_code == 422
    saved = rita.put(SETTINGS, json={"client_id": "17.42", "client_secret": "the-secret"})
    assert saved.status_code == 200, saved.text
    assert (saved.json()["configured"], saved.json()["has_secret"]) == (True, True)
    for response in (
        saved,
        rita.get(SETTINGS),
        rita.get("/organisation/settings"),
        rita.get("/organisation/audit"),
    ):
        assert "the-secret" not in response.text
    assert "the-secret" not in repr(people.accounts.settings.all())
    # The secret stays where it is left out, for the same id only.
    assert rita.put(SETTINGS, json={"client_id": "17.42"}).status_code == 200
    assert rita.put(SETTINGS, json={"client_id": "17.43"}).status_code == 422
    assert back(ada, begun(ada, "/account/slack/install")) == "/-/settings/notifications?slack=%23training"
    assert rita.delete(SETTINGS, headers=JSON).status_code == 204
    assert ada.post("/account/slack/install", json={}).status_code == 409
    assert not people.accounts.settings.all()["slack_client_secret"]


def test_what_a_variable_sets_stays(people: People) -> None:
    rita = people.browser("rita")
    shown = rita.get(SETTINGS).json()
    assert (shown["client_id"], shown["enforced_by"]) == ("17.42", "RUNVITALS_SLACK_CLIENT_ID")
    for response in (
        rita.put(SETTINGS, json={"client_id": "1.2", "client_secret": "other"}),
        rita.delete(SETTINGS, headers=JSON),
    ):
        assert response.status_code == 409, response.text
        assert "RUNVITALS_SLACK_CLIENT_ID" in response.json()["error"]
