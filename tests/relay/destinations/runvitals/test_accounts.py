"""What the relay tells a server with accounts: the team of a run, and its author."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.base import stored_keys
from runvitals.journal import frames
from tests.relay.engine.test_delivery_thread import Relay
from tests.relay.journals import Journal
from tests.relay.receiver import Receiver


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"))
    yield receiver
    receiver.close()


@pytest.fixture
def environ(tmp_path: Path, receiver: Receiver) -> dict[str, str]:
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    stored_keys.save(receiver.url, "rvt-key", environ)
    return environ


@pytest.fixture
def relay(receiver: Receiver, environ: dict[str, str]) -> Iterator[Relay]:
    relay = Relay(receiver.url, environ)
    yield relay
    relay.close()


def author(receiver: Receiver) -> dict[str, str]:
    """The author that the last request names."""
    names = (b"x-runvitals-username", b"x-runvitals-user-email")
    headers = receiver.headers[-1]
    return {name.decode(): headers[name].decode() for name in names if name in headers}


def test_every_envelope_names_the_team(journal: Journal, receiver: Receiver, relay: Relay) -> None:
    journal.monitor.json(frames.INFO, {"t": journal.t0, "settings": {"entity": "vision"}})
    relay.serve(journal.folder, live=True)
    for second in range(3):
        journal.sample(10 * second, cpu=1.0)
        journal.log(10 * second, second, loss=1.0)
        relay.work(10)
    assert len(receiver.requests) > 2
    assert {envelope["entity"] for request in receiver.requests for envelope in request} == {"vision"}


def test_a_team_that_only_the_files_name(tmp_path: Path, receiver: Receiver, relay: Relay) -> None:
    journal = Journal(tmp_path / "other", entity="vision")  # without a monitor, nobody records settings
    journal.log(0, 0, loss=1.0)
    relay.serve(journal.folder, live=True)
    relay.work(10)
    assert receiver.requests
    assert {envelope["entity"] for request in receiver.requests for envelope in request} == {"vision"}


def test_without_a_team_no_envelope_names_one(journal: Journal, receiver: Receiver, relay: Relay) -> None:
    journal.monitor.json(frames.INFO, {"t": journal.t0, "settings": {"entity": None}})
    relay.serve(journal.folder, live=True)
    relay.work(10)
    assert receiver.requests
    assert not any("entity" in envelope for request in receiver.requests for envelope in request)


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({}, {}),
        ({"WANDB_USERNAME": "ada"}, {"x-runvitals-username": "ada"}),
        ({"WANDB_USER_EMAIL": "ada@example.com"}, {"x-runvitals-user-email": "ada@example.com"}),
        ({"RUNVITALS_USERNAME": "bob", "WANDB_USERNAME": "ada"}, {"x-runvitals-username": "bob"}),
        (
            {"RUNVITALS_USER_EMAIL": "böb@example.com", "WANDB_USERNAME": "ada"},
            {"x-runvitals-username": "ada", "x-runvitals-user-email": "böb@example.com"},
        ),
        ({"RUNVITALS_USERNAME": "a\r\nX-Other: 1"}, {}),
        ({"RUNVITALS_USERNAME": "a" * 300}, {}),
    ],
)
def test_the_author_is_sent_as_headers(
    journal: Journal,
    receiver: Receiver,
    relay: Relay,
    environ: dict[str, str],
    variables: dict[str, str],
    sent: dict[str, str],
) -> None:
    relay.serve(journal.folder, live=True, environ={**environ, **variables})
    journal.sample(0, cpu=1.0)
    relay.work(10)
    assert author(receiver) == sent


def test_no_author_is_sent_without_a_token(journal: Journal, receiver: Receiver, tmp_path: Path) -> None:
    relay = Relay(receiver.url, {"XDG_CONFIG_HOME": str(tmp_path / "none"), "WANDB_USERNAME": "ada"})
    relay.serve(journal.folder, live=True)
    journal.sample(0, cpu=1.0)
    relay.work(10)
    relay.close()
    assert author(receiver) == {}


def test_a_run_that_the_key_may_not_send_stays_in_the_journal(
    journal: Journal, receiver: Receiver, relay: Relay, environ: dict[str, str]
) -> None:
    receiver.faults.extend([(403, "")] * 2)
    cursor = relay.serve(journal.folder, live=True)
    journal.sample(0, cpu=1.0)
    relay.work(10)
    assert cursor.error == f"{receiver.url} does not accept the run: 403 a fault of the test"
    assert [text for _, text in relay.reported] == [cursor.error]
    assert (len(receiver.requests), receiver.samples()) == (1, {})
    stored_keys.save(receiver.url, "rvt-other", environ)
    relay.work(10)
    assert cursor.error != ""
    stored_keys.save(receiver.url, "rvt-third", environ)
    relay.work(10)
    assert cursor.error == ""
    assert list(receiver.samples()) == ["cpu"]
