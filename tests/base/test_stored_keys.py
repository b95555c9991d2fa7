"""Tokens: which server gets which, and the login file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from runvitals.base import stored_keys

A, B = "https://a.example", "https://b.example"


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def test_token_variable_belongs_to_the_named_server(home: dict[str, str]) -> None:
    environ = {**home, "RUNVITALS_TOKEN": "rvt_variable", "RUNVITALS_SERVER": A}
    stored_keys.save(B, "rvt_b", home)
    assert stored_keys.token(A, environ) == "rvt_variable"
    assert stored_keys.token("HTTPS://A.example:443/", environ) == "rvt_variable"
    assert stored_keys.token(B, environ) == "rvt_b"
    for other in (
        "https://evil.example",
        "http://a.example",
        "https://a.example:8443",
        "https://a.example/x",
    ):
        assert stored_keys.token(other, environ) is None


def test_token_variable_belongs_to_the_only_logged_in_server(home: dict[str, str]) -> None:
    environ = {**home, "RUNVITALS_TOKEN": "rvt_variable"}
    assert stored_keys.token(A, environ) is None
    stored_keys.save(A, "rvt_a", home)
    assert stored_keys.token(A, environ) == "rvt_variable"
    assert stored_keys.token(B, environ) is None
    stored_keys.save(B, "rvt_b", home)
    assert [stored_keys.token(url, environ) for url in (A, B)] == ["rvt_a", "rvt_b"]


def test_url_spellings_share_one_entry(home: dict[str, str]) -> None:
    stored_keys.save("https://A.example/", "rvt_old", home)
    stored_keys.save(A, "rvt_new", home)
    assert stored_keys.tokens(home) == ["rvt_new"]
    assert stored_keys.delete("https://a.example:443", home) == [A]
    assert stored_keys.token(A, home) is None


def test_file_version_changes_with_the_file(home: dict[str, str]) -> None:
    assert stored_keys.file_version(home) is None
    stored_keys.save(A, "rvt_1", home)
    before = stored_keys.file_version(home)
    assert stored_keys.file_version(home) == before is not None
    stored_keys.save(A, "rvt_2", home)
    assert stored_keys.file_version(home) != before


@pytest.mark.parametrize(
    ("environ", "text"),
    [
        ({}, "`runvitals login https://a.example` asks for another token"),
        (
            {"RUNVITALS_TOKEN": "x", "RUNVITALS_SERVER": A},
            "the token in RUNVITALS_TOKEN is not, or no longer, valid",
        ),
        (
            {"RUNVITALS_TOKEN": "x", "RUNVITALS_SERVER": B},
            "is only sent to the server that RUNVITALS_SERVER names",
        ),
    ],
    ids=["none", "wrong", "of another server"],
)
def test_remedy_of_rejected_credentials(home: dict[str, str], environ: dict[str, str], text: str) -> None:
    assert text in stored_keys.remedy(A, {**home, **environ})


class FixedResponse(BaseHTTPRequestHandler):
    answer = (200, b"")

    def do_GET(self) -> None:
        status, body = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests are quiet."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), FixedResponse) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (401, b'{"error": "a token is needed"}', "rejected the token (401)"),
        (403, b"no such host name here", "rejected the request (403): no such host name here"),
        (200, b'{"kind": "local"}', "shows the journals of its machine"),
        (200, b"<html>", "is not a runvitals server: /api/v1/about returned 200"),
        (200, b"[]", "is not a runvitals server"),
        (404, b"not here", "is not a runvitals server: /api/v1/about returned 404"),
        (503, b"soon", "could not check the token: 503 soon"),
    ],
    ids=["wrong token", "wrong name", "local", "a web site", "a list", "not found", "busy"],
)
def test_check_raises_for_a_rejected_token(
    url: str, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, text: str
) -> None:
    monkeypatch.setattr(FixedResponse, "answer", (status, body))
    with pytest.raises(ValueError, match=r".") as raised:
        stored_keys.check(url, "rvt_x")
    assert text in str(raised.value)


def test_check_accepts_a_valid_token(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FixedResponse, "answer", (200, b'{"kind": "server", "more": 1}'))
    stored_keys.check(url + "/", "rvt_x")


def test_check_raises_for_an_unreachable_server() -> None:
    with pytest.raises(OSError, match=r"could not reach http://127\.0\.0\.1:1: .*refused"):
        stored_keys.check("http://127.0.0.1:1", "rvt_x")
