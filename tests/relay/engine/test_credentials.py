"""Credentials are sent only to the server they belong to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runvitals.base import stored_keys
from runvitals.cli import main
from runvitals.relay.destination import Rejected, Retry
from runvitals.relay.destinations.mlflow.address import is_trusted
from runvitals.relay.engine.credentials import credentials_are_for, environ_for_undelivered
from tests.relay.journals import Journal, Sender
from tests.relay.recording_server import RecordingServer

SECRETS = {
    "REMOTE_WRITE_TOKEN": "s3cret",
    "OTEL_EXPORTER_OTLP_HEADERS": "api-key=s3cret",
    "MLFLOW_TRACKING_USERNAME": "me",
    "MLFLOW_TRACKING_PASSWORD": "s3cret",
    "RUNVITALS_TOKEN": "s3cret",
}
BASIC = "Basic bWU6czNjcmV0"
SERVERS = {
    "remote_write": "REMOTE_WRITE_URL",
    "otel": "OTEL_EXPORTER_OTLP_ENDPOINT",
    "mlflow": "MLFLOW_TRACKING_URI",
}


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in SECRETS.items():
        monkeypatch.setenv(name, text)


def sent(journal: Journal, destination: str, target: RecordingServer) -> str:
    """The headers of all requests sent when a run is delivered to `destination`."""
    sender = Sender(journal.folder, destination)
    journal.sample(0, cpu=1.0)
    target.responses.extend([(503, {}, b"")] * (10 - len(target.responses)))
    with pytest.raises((Retry, Rejected, OSError)):
        sender.send()
    sender.kill()
    return str([request.headers for request in target.requests])


@pytest.mark.parametrize("kind", SERVERS)
def test_credentials_go_to_the_named_server_only(
    journal: Journal, target: RecordingServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv(SERVERS[kind], "https://mine.example")
    headers = sent(journal, f"{kind}:{target.url}", target)
    assert target.requests
    assert "s3cret" not in headers
    assert BASIC not in headers
    monkeypatch.setenv(SERVERS[kind], target.url)
    headers = sent(journal, kind if kind == "mlflow" else f"{kind}:{target.url}/x", target)
    assert "s3cret" in headers or BASIC in headers


@pytest.mark.parametrize("kind", SERVERS)
def test_credentials_go_to_none_of_several_servers(
    journal: Journal, target: RecordingServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    destinations = [f"{kind}:{target.url}", f"{kind}:https://mine.example"]
    monkeypatch.setenv("RUNVITALS_DESTINATIONS", json.dumps(destinations))
    headers = sent(journal, destinations[0], target)
    assert target.requests
    assert "s3cret" not in headers
    assert BASIC not in headers


@pytest.mark.parametrize("kind", [*SERVERS, "http"])
def test_redirects_are_not_followed(journal: Journal, target: RecordingServer, kind: str) -> None:
    other = RecordingServer()
    target.default_headers = {}
    target.responses.extend([(307, {"Location": f"{other.url}/stolen"}, b"")] * 20)
    destination = target.url if kind == "http" else f"{kind}:{target.url}"
    sent(journal, destination, target)
    assert target.requests
    assert not other.requests
    other.close()


@pytest.mark.parametrize("kind", ["remote_write", "otel"])
def test_sync_to_another_server_sends_no_credentials(
    journal: Journal, target: RecordingServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The credentials belong to the server in `RUNVITALS_DESTINATIONS`."""
    monkeypatch.setenv("RUNVITALS_DESTINATIONS", f"{kind}:https://mine.example")
    journal.sample(0, cpu=1.0)
    folder = Path(journal.folder)
    main(["sync", folder.name, "--to", f"{kind}:{target.url}", "--dir", str(folder.parents[1])])
    assert target.requests
    assert "s3cret" not in str([request.headers for request in target.requests])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mine.example", True),
        ("https://MINE.example:443/path", True),
        ("http://mine.example", False),
        ("https://mine.example:8443", False),
        ("https://mine.example.evil", False),
        ("https://mine.example@evil", False),
        ("https://evil/https://mine.example", False),
    ],
)
def test_servers_are_identified_by_scheme_host_and_port(url: str, expected: bool) -> None:
    environ = {"REMOTE_WRITE_URL": "https://other.example, https://mine.example/api/v1/write"}
    assert credentials_are_for(url, "remote_write", environ) is expected


def test_mlflow_credentials_go_to_the_tracking_uri() -> None:
    assert is_trusted("http://mine", {})
    assert not is_trusted("http://mine", {"MLFLOW_TRACKING_URI": "http://other"})
    two = {"RUNVITALS_DESTINATIONS": "mlflow:http://mine,mlflow:http://other#run=1"}
    assert not is_trusted("http://mine", two)


def test_destination_in_a_run_folder_gets_no_credentials() -> None:
    """A run copied into the data folder may contain a cursor for any destination."""
    left = environ_for_undelivered(
        "remote_write:https://evil", {**SECRETS, "XDG_CONFIG_HOME": "/nonexistent"}
    )
    assert "REMOTE_WRITE_TOKEN" not in left
    assert "MLFLOW_TRACKING_PASSWORD" in left  # another destination's, which is not passed to it
    named = {**SECRETS, "RUNVITALS_DESTINATIONS": "remote_write:https://mine"}
    assert environ_for_undelivered("remote_write:https://mine", named) == named
    assert "REMOTE_WRITE_TOKEN" not in environ_for_undelivered("remote-write:https://evil", named)
    ours = {**SECRETS, "RUNVITALS_SERVER": "https://mine"}
    assert environ_for_undelivered("https://mine", ours) == ours  # the token is only sent to that server
    environ = {**SECRETS, "REMOTE_WRITE_URL": "https://mine"}
    assert not credentials_are_for(
        "https://evil", "remote_write", environ_for_undelivered("remote_write:https://evil", environ)
    )


def test_runvitals_token_goes_to_runvitals_server() -> None:
    environ = {"RUNVITALS_TOKEN": "s3cret", "XDG_CONFIG_HOME": "/nonexistent"}
    assert stored_keys.token("https://evil", environ) is None
    assert stored_keys.token("https://evil", {**environ, "RUNVITALS_SERVER": "https://mine"}) is None
    assert stored_keys.token("https://mine/", {**environ, "RUNVITALS_SERVER": "https://mine"}) == "s3cret"
