"""`runvitals login` and `whoami`, at a server with accounts."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from runvitals.cli import main
from runvitals.relay.destinations.runvitals.browser_sign_in import BrowserSignIn
from runvitals.server.audit.storage.audit import CLI
from tests.server.accounts.routes.people import People, serving_people


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[People]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("RUNVITALS_TOKEN", "RUNVITALS_SERVER"):
        monkeypatch.delenv(name, raising=False)
    with serving_people(tmp_path) as people:
        yield people


def test_a_key_is_fetched_once_the_browser_has_confirmed_the_code(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    pauses: list[float] = []

    def confirm(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            browser.post("/auth/device/confirm", json={"code": code.code, "allow": True})

    sign_in = BrowserSignIn(people.url, confirm)
    begun = sign_in.begin("gpu-box")
    assert begun is not None
    code = begun
    assert code.page == f"{people.url}/-/device"
    key = sign_in.wait(code)
    assert (key.user, pauses) == ("ada", [2.0, 2.0])
    assert people.program(key.key).get("/account").json()["name"] == "ada"


def test_a_denied_or_forgotten_code_ends_the_command(people: People) -> None:
    people.add("ada")
    browser = people.browser("ada")
    denied = BrowserSignIn(people.url).begin("gpu-box")
    assert denied is not None
    browser.post("/auth/device/confirm", json={"code": denied.code, "allow": False})
    with pytest.raises(ValueError, match="denied in the browser"):
        BrowserSignIn(people.url).wait(denied)
    sign_in = BrowserSignIn(people.url, lambda seconds: people.pass_s(seconds * 60))
    forgotten = sign_in.begin("gpu-box")
    assert forgotten is not None
    with pytest.raises(ValueError, match="has expired"):
        sign_in.wait(forgotten)


def test_a_pasted_key_is_stored_and_says_who_one_is(
    people: People, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ada = people.add("ada")
    people.accounts.teams.create("vision", CLI, people.now_ms, administrator=ada.id)
    secret, key = people.accounts.keys.create("laptop", CLI, people.now_ms, user_id=ada.id, scope="read")
    people.rights_changed()
    assert main(["whoami"]) == 1
    assert "no server; expected the URL of one" in capsys.readouterr().err
    assert main(["whoami", people.url]) == 1
    assert "needs a key, and none is stored" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{secret}\n"))
    assert main(["login", people.url]) == 0
    assert "token stored in" in capsys.readouterr().out
    assert main(["whoami"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == f"server {people.url}"
    assert "teams vision (admin)" in lines
    assert "runs go to ada" in lines
    assert main(["whoami", people.url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == key.public_id
    people.accounts.keys.revoke(key.id, CLI, people.now_ms)
    people.rights_changed()
    assert main(["whoami"]) == 1
    assert "does not accept the key" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        {"path": "@other.example"}, {"path": ".other.example/x"},
        {"interval_s": "soon"}, {"interval_s": "1e999"}, {"user_code": None},
    ],
)  # fmt: skip
def test_answer_of_another_kind_of_server(wrong: dict[str, object]) -> None:
    """The address that the user opens is always of the server that was named."""
    answer = {"user_code": "AB-CD", "path": "/-/device", "device_code": "x", "interval_s": 5, **wrong}
    answer = {name: value for name, value in answer.items() if value is not None}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps(answer).encode()
            self.send_response(201)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            with pytest.raises(ValueError, match="is not a runvitals server"):
                BrowserSignIn(f"http://127.0.0.1:{server.server_port}").begin("gpu-box")
        finally:
            server.shutdown()
            thread.join()
