"""Messages by Apprise itself, to a server that plays services on the internet."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from runvitals.server.alerts.delivery import apprise_process
from runvitals.server.alerts.delivery.apprise import AppriseChannel
from runvitals.server.alerts.delivery.channel import DeliveryFailed
from runvitals.server.alerts.storage.destinations import SealedUrl
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.database.secret_box import SecretBox, apprise_purpose
from runvitals.server.metadata_store import MetadataStore
from tests.patience import PATIENCE_S
from tests.server.mail.conftest import T0
from tests.server.outbound.site import Site, serving

pytest.importorskip("apprise")


@dataclass
class Team:
    """A team with destinations."""

    id: int
    store: MetadataStore
    box: SecretBox
    channel: AppriseChannel

    def add(self, url: str) -> int:
        sealed = SealedUrl(self.box.seal(url.encode(), apprise_purpose(self.id)), "test")
        destinations, name = self.store.alerts.destinations, f"n{len(url)}"
        return destinations.create("apprise", self.id, name, sealed._asdict(), CLI, T0).id


@pytest.fixture
def ntfy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """The service ntfy.sh."""
    with serving(tmp_path, "ntfy.sh", "inside.example") as site:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
        yield site


@pytest.fixture
def team(store: MetadataStore, box: SecretBox, ntfy: Site) -> Team:
    row = store.accounts.teams.create("vision", CLI, T0)
    channel = AppriseChannel(store, box, ntfy.fetcher(), lambda: "https://runs.example")
    return Team(row.id, store, box, channel)


def test_a_message_arrives_and_a_redirect_is_not_followed(team: Team, ntfy: Site) -> None:
    ntfy.answers["/"] = (200, {"Content-Type": "application/json"}, b'{"id": "1"}')
    destination = team.add("ntfys://ntfy.sh/our-secret-topic")
    response = team.channel.send(team.id, destination, "otter-1 crashed", "after 3 h", "error")
    assert response.text == "ntfy accepted it"
    [body] = map(json.loads, ntfy.bodies)
    assert (body["topic"], body["message"]) == ("our-secret-topic", "after 3 h")
    ntfy.answers["/"] = (307, {"Location": "https://inside.example/"}, b"")
    with pytest.raises(DeliveryFailed) as failed:
        team.channel.send(team.id, destination, "again", "")
    assert failed.value.state == "pending"
    assert "our-secret-topic" not in str(failed.value)
    assert {headers["Host"] for _, headers in ntfy.requests} == {"ntfy.sh"}


def test_nothing_inside_is_reached(team: Team, ntfy: Site) -> None:
    ntfy.names["inside.example"] = [["10.0.0.7"]]
    for url in ("ntfys://inside.example/topic", "syslog://"):
        with pytest.raises(DeliveryFailed):
            team.channel.send(team.id, team.add(url), "title", "text")
    assert ntfy.reached == []


def test_a_url_is_checked(team: Team) -> None:
    unknown = team.channel.check("nonsense://a-secret-word@x")
    assert (unknown.service, "a-secret-word" in (unknown.error or "")) == (None, False)


def test_the_process_loads_little_and_keeps_the_bytecode_of_services(tmp_path: Path) -> None:
    """Otherwise each message compiles all services of Apprise anew, which takes longer than to send it."""
    message = {"url": "ntfys://ntfy.sh/topic", "title": "", "text": "", "level": "info", "check": True}
    request = json.dumps({**message, "proxy": "http://127.0.0.1:9", "port": 9})
    command = [sys.executable, "-I", "-v", "-X", f"pycache_prefix={tmp_path}", apprise_process.__file__]
    done = subprocess.run(command, input=request, capture_output=True, text=True, timeout=PATIENCE_S)
    assert json.loads(done.stdout)["service"] == "ntfy", done.stderr
    assert "import 'apprise'" in done.stderr
    assert "import 'runvitals.server" not in done.stderr
    assert list(tmp_path.rglob("apprise/plugins/ntfy*.pyc"))
