"""What receivers get: mail, messages of Slack, requests of webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.delivery.channels import Channels
from runvitals.server.alerts.delivery.delivery import NotificationDelivery
from runvitals.server.alerts.storage.destinations import SealedUrl
from runvitals.server.audit.storage.audit import CLI, Actor
from runvitals.server.database.secret_box import (
    SecretBox,
    slack_purpose,
    team_secret_purpose,
    user_slack_purpose,
)
from runvitals.server.events.outbox import Notification, StoredNotification, add
from runvitals.server.mail.mailer import Mailer
from runvitals.server.metadata_store import MetadataStore
from tests.server.mail.conftest import T0, SetClock
from tests.server.mail.receiver import Receiver
from tests.server.outbound.site import Site

SLACK = "https://hooks.slack.com/services/T0/B0/secretsecret"
CRASHED = Notification(
    "a",
    "run.crashed",
    "user:1",
    "run:1",
    "[vision/digits] <!channel> crashed\nExit code 1.\n\nLast step 40.",
    {
        "path": "/vision/digits/runs/r",
        "link": "Open the run",
        "level": "error",
        "values": {"run_id": "r", "run_name": '"<!channel>', "metric_value": 0.5},
    },
    T0,
)


class Room:
    """A server's channels, and a team with its administrator."""

    def __init__(
        self, store: MetadataStore, site: Site, box: SecretBox, clock: SetClock, mailer: Mailer
    ) -> None:
        self.store, self.box, self.clock, self.mailer = store, box, clock, mailer
        outside = SimpleNamespace(
            box=box, fetcher=site.fetcher(), known_server_url=lambda: "https://runs.example"
        )
        channels = Channels(store, outside, mailer, Directory(store, clock, time.monotonic), clock)  # type: ignore[arg-type]
        self.delivery = NotificationDelivery(store.alerts.outbox, channels.by_target, clock)
        accounts = store.accounts
        self.ada = accounts.users.create("ada", CLI, T0, address="ada@example.org", verified=True)
        self.team = accounts.teams.create("vision", CLI, T0).id
        self.by = Actor("user", "ada", self.ada.id)

    def tell(self, target: str, **how: Any) -> StoredNotification:
        """Deliver a notification; returns what became of it."""
        new = replace(CRASHED, target=target, dedupe_key=target, team_id=self.team, **how)
        self.store.write(lambda connection: add(connection, new))
        self.delivery.deliver_due()
        return self.store.alerts.outbox.of_team(self.team, 1)[0]

    def slack(self) -> int:
        sealed = SealedUrl(self.box.seal(SLACK.encode(), slack_purpose(self.team)), "")
        destinations = self.store.alerts.destinations
        return destinations.create("slack", self.team, "#runs", sealed._asdict(), self.by, T0).id

    def webhook(self, **values: Any) -> int:
        for name, value in (("TOKEN", "token"), ("SIGN", "key")):
            sealed = self.box.seal(value.encode(), team_secret_purpose(self.team, name))
            self.store.accounts.team_secrets.put(self.team, name, sealed, self.by, T0)
        fields = {"url": "https://ci.example/hook", "enabled": True, "payload": None}
        fields |= {"access_secret": "TOKEN", "signing_secret": "SIGN", **values}
        return self.store.alerts.destinations.create("webhook", self.team, "ci", fields, self.by, T0).id


NewMailer = Callable[[str], Mailer]


@pytest.fixture
def new_mailer(store: MetadataStore, box: SecretBox, clock: SetClock) -> NewMailer:
    def make(smtp_url: str) -> Mailer:
        named = {"RUNVITALS_MAIL_FROM": "runs@lab.example", "RUNVITALS_URL": "https://runs.lab.example/"}
        return Mailer(store, box, clock, {**named, "RUNVITALS_SMTP_URL": smtp_url} if smtp_url else {})

    return make


@pytest.fixture
def room(
    store: MetadataStore, site: Site, box: SecretBox, clock: SetClock, new_mailer: NewMailer
) -> Iterator[Room]:
    with Receiver() as receiver:
        room = Room(store, site, box, clock, new_mailer(receiver.url))
        room.receiver = receiver  # type: ignore[attr-defined]
        yield room
        room.delivery.close()


def received(room: Room) -> list[Any]:
    room.mailer.send_due()
    return room.receiver.handler.received  # type: ignore[attr-defined, no-any-return]


def test_a_mail(room: Room) -> None:
    assert room.tell(f"user:{room.ada.id}").state == "pending"
    [mail] = received(room)
    assert (mail["To"], mail["Subject"]) == ("ada@example.org", "[vision/digits] <!channel> crashed")
    text = mail.get_body(("plain",)).get_content().replace("\r\n", "\n")
    assert "Exit code 1.\n\nLast step 40." in text
    assert "Open the run:\nhttps://runs.lab.example/vision/digits/runs/r" in text
    [stored] = room.store.alerts.outbox.of_team(room.team, 1)
    assert stored.state == "sent"
    again = room.store.alerts.outbox.send_again(room.team, stored.id, room.clock())
    assert again.state == "pending"
    room.delivery.deliver_due()
    assert len(received(room)) == 2


def test_a_mail_that_is_refused_is_shown_as_such(room: Room) -> None:
    room.receiver.handler.refuse["ada@example.org"] = "550 no such mailbox"  # type: ignore[attr-defined]
    room.tell(f"user:{room.ada.id}")
    assert received(room) == []
    [stored] = room.store.alerts.outbox.of_team(room.team, 1)
    assert (stored.state, stored.error) == ("failed", "550 no such mailbox")


def test_a_message_of_slack(room: Room, site: Site) -> None:
    site.answers["/services/T0/B0/secretsecret"] = (200, {}, b"ok")
    stored = room.tell(f"slack:{room.slack()}")
    assert (stored.state, stored.status, stored.answer) == ("sent", 200, "ok")
    body = json.loads(site.bodies[0])
    assert body["text"] == "\N{LARGE RED CIRCLE} [vision/digits] &lt;!channel&gt; crashed"
    texts = [block["text"] for block in body["blocks"]]
    assert [text["type"] for text in texts] == ["plain_text", "plain_text", "mrkdwn"]
    assert texts[2]["text"] == "<https://runs.example/vision/digits/runs/r|Open the run>"


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_destination_that_slack_does_not_know_is_disabled_and_its_author_told(
    room: Room, site: Site, status: int
) -> None:
    site.answers["/services/T0/B0/secretsecret"] = (status, {}, b"no_service")
    destination = room.slack()
    assert room.tell(f"slack:{destination}").state == "failed"
    [row] = room.store.alerts.destinations.of_team("slack", room.team)
    assert row.disabled_ms == room.clock()
    room.delivery.deliver_due()
    [mail] = received(room)
    assert (mail["To"], mail["Subject"]) == (
        "ada@example.org",
        "Slack no longer accepts messages of team vision to #runs",
    )
    assert len(site.bodies) == 1


def test_a_busy_slack_is_tried_again(room: Room, site: Site) -> None:
    site.answers["/services/T0/B0/secretsecret"] = (429, {"Retry-After": "30"}, b"rate_limited")
    stored = room.tell(f"slack:{room.slack()}")
    assert (stored.state, stored.tries, stored.status) == ("pending", 1, 429)


def test_the_channel_of_a_user(room: Room, site: Site) -> None:
    site.answers["/services/T0/B0/secretsecret"] = (404, {}, b"no_service")
    destinations, ada = room.store.alerts.destinations, room.ada.id
    assert room.tell(f"user-slack:{ada}").error == "the user has connected no channel of Slack"
    sealed = room.box.seal(SLACK.encode(), user_slack_purpose(ada))
    destinations.put_of_user(ada, SealedUrl(sealed, "hooks.slack.com"), T0)
    room.store.alerts.outbox.send_again(room.team, 1, T0)
    room.delivery.deliver_due()
    assert len(site.bodies) == 1
    channels = destinations.of_user(ada)
    assert channels is not None
    assert channels.disabled_ms == room.clock()
    room.delivery.deliver_due()
    [mail] = received(room)
    assert mail["Subject"] == "Slack no longer accepts your messages"


def test_a_request_of_a_webhook_is_signed_and_the_same_when_repeated(room: Room, site: Site) -> None:
    site.answers["/hook"] = (500, {}, b"busy")
    template = (
        '{"text": "${run_name} at ${run_url}", "loss": "${metric_value}", "key": "${SIGN}${ACCESS_TOKEN}"}'
    )
    stored = room.tell(f"webhook:{room.webhook(payload=template)}")
    assert (stored.state, stored.answer) == ("pending", "busy")
    site.answers["/hook"] = (202, {}, b"")
    room.clock.now_ms += 120_000
    room.delivery.deliver_due()
    [stored] = room.store.alerts.outbox.of_team(room.team, 1)
    assert (stored.state, stored.status, stored.tries) == ("sent", 202, 2)
    first, second = site.bodies
    assert first == second
    assert json.loads(first) == {
        "text": '"<!channel> at https://runs.example/vision/digits/runs/r',
        "loss": 0.5,
        "key": "keytoken",
    }
    (_, before), (_, after) = site.requests
    assert before["X-Runvitals-Delivery"] == after["X-Runvitals-Delivery"] == str(stored.id)
    signed = after["X-Runvitals-Timestamp"].encode() + b"." + second
    assert after["X-Runvitals-Signature"] == f"v1={hmac.new(b'key', signed, hashlib.sha256).hexdigest()}"
    digest = hmac.new(b"key", second, hashlib.sha256).digest()
    assert after["X-Wandb-Signature"] == base64.b64encode(digest).decode()
    assert after["Authorization"] == "Bearer token"
    assert after["User-Agent"].startswith("runvitals/")


def test_secrets_of_a_webhook_are_not_shown_when_they_come_back(room: Room, site: Site) -> None:
    site.answers["/hook"] = (400, {}, b"no user has Bearer token, signed with key")
    stored = room.tell(f"webhook:{room.webhook()}")
    assert stored.answer == "no user has Bearer ***, signed with ***"


def test_a_secret_that_no_header_can_hold_is_not_shown(room: Room, site: Site) -> None:
    webhook = room.webhook()
    sealed = room.box.seal(b"secret\n", team_secret_purpose(room.team, "TOKEN"))
    room.store.accounts.team_secrets.put(room.team, "TOKEN", sealed, room.by, T0)
    stored = room.tell(f"webhook:{webhook}")
    assert (
        stored.error == "the header Authorization is not printable ASCII: check for a line break at its end"
    )
    assert site.requests == []


def test_a_webhook_without_payload_and_secrets_gets_all_values(room: Room, site: Site) -> None:
    site.answers["/hook"] = (200, {}, b"")
    room.tell(f"webhook:{room.webhook(access_secret=None, signing_secret=None)}")
    body = json.loads(site.bodies[0])
    assert (body["event"], body["run_id"], body["title"]) == (
        "run.crashed",
        "r",
        "[vision/digits] <!channel> crashed",
    )
    [(_, headers)] = site.requests
    assert not {"Authorization", "X-Runvitals-Signature", "X-Wandb-Signature"} & headers.keys()


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ({"enabled": False}, "failed"),
        ({"url": "https://ci.example/gone"}, "failed"),
        ({"url": "https://127.0.0.1/"}, "pending"),
    ],
)
def test_webhooks_that_cannot_be_reached(room: Room, site: Site, values: dict[str, Any], state: str) -> None:
    site.answers["/gone"] = (410, {}, b"")
    assert room.tell(f"webhook:{room.webhook(**values)}").state == state
    assert not any(path == "/" for path, _ in site.requests)


@pytest.mark.parametrize("target", ["slack:99", "webhook:99"])
def test_a_destination_that_was_deleted(room: Room, target: str) -> None:
    assert room.tell(target).state == "failed"


def test_without_mail(
    store: MetadataStore, site: Site, box: SecretBox, clock: SetClock, new_mailer: NewMailer
) -> None:
    room = Room(store, site, box, clock, new_mailer(""))
    stored = room.tell(f"user:{room.ada.id}")
    room.delivery.close()
    assert (stored.state, stored.error) == ("dropped", "this server sends no mail")
