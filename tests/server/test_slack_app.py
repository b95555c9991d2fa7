"""Channels by the operator's app of Slack, at a server that plays Slack's documented endpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

import pytest

from runvitals.store.metadata.accounts.audit import CLI
from tests.outbound.site import Answer, Site, serving
from tests.server.api.accounts.people import Browser, People, serving_people

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
                answer: dict[str, object] = {"ok": False, "error": "bad_client_secret"}
            elif sent["code"] != "good":
                answer = {"ok": False, "error": "invalid_code"}
            else:
                hook = {"channel": "#training", "channel_id": "C1", "url": HOOK}
                answer = {"ok": True, "access_token": "xoxb", "incoming_webhook": hook}
            return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()

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
    answer = browser.post(path, json={})
    assert answer.status_code == 200, answer.text
    url = urlsplit(answer.json()["url"])
    asked = {name: values[0] for name, values in parse_qs(url.query).items()}
    assert f"{url.scheme}://{url.netloc}{url.path}" == "https://slack.com/oauth/v2/authorize"
    assert (asked["client_id"], asked["scope"]) == ("17.42", "incoming-webhook")
    assert asked["redirect_uri"] == "https://runs.example/api/v1/account/slack/callback"
    assert "the-secret" not in answer.text
    return asked["state"]


def back(browser: Browser, state: str, **more: str) -> str:
    """Where the browser is led when Slack sends it back."""
    parameters = {"state": state, "code": "good", **more}
    answer = browser.get("/account/slack/callback", params=parameters)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def test_a_channel_of_a_team_and_an_own_one(people: People) -> None:
    ada = people.browser("ada")
    assert ada.get(TEAM).json()["app"] is True
    for _ in range(2):  # the second one replaces the first
        assert back(ada, begun(ada)) == "/vision/-/settings/integrations?slack=%23training"
    [found] = ada.get(TEAM).json()["slack_destinations"]
    assert (found["channel"], found["shown"]) == ("#training", "hooks.slack.com/…/efgh")
    assert back(ada, begun(ada, "/account/slack/install")) == "/-/settings/alerts?slack=%23training"
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


def test_what_slack_refuses_is_said_without_the_secret(people: People, slack: Site) -> None:
    ada = people.browser("ada")
    assert back(ada, begun(ada), code="bad").endswith("slack_error=Slack%20refused%20it%3A%20invalid_code")
    assert "cancelled" in back(ada, begun(ada), code="", error="access_denied")
    slack.names["slack.com"] = [["10.0.0.1"]]
    refused = back(ada, begun(ada))
    assert "private%20network" in refused
    assert "the-secret" not in refused
