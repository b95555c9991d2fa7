"""The configurations of docs/operations/server.md for a server below a path, in real proxies."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from runvitals.server.http.public_path import BelowPath
from runvitals.server.http.serve import Server, listen
from tests.deploy.test_proxies import caddy, nginx
from tests.patience import PATIENCE_S, eventually
from tests.relay.real_servers import free_port
from tests.server.serving import serving

GUIDE = Path(__file__).parents[2] / "docs" / "operations" / "server.md"


def documented(language: str) -> str:
    """The configuration in this language."""
    found = re.search(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


def command(kind: str, folder: Path, port: int, server_port: int) -> list[str]:
    text = documented("nginx" if kind == "nginx" else "caddyfile").replace(
        "127.0.0.1:8900", f"127.0.0.1:{server_port}"
    )
    if kind == "nginx":
        return nginx(folder, f"server {{ listen 127.0.0.1:{port};\n{text}}}")
    return caddy(folder, f"{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n{text}}}\n")


@contextmanager
def below(kind: str, folder: Path) -> Iterator[httpx.Client]:
    """A client of a proxy before a server."""
    port, listener = free_port(), listen(0)
    words = command(kind, folder, port, listener.getsockname()[1])
    program = shutil.which(words[0], path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip(f"{words[0]} is not installed")
    with serving(folder, token_required=True) as served, listener, (folder / "log").open("wb") as log:
        server = Server(BelowPath(served.app, served.app.closing, "/runvitals"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        environ = {"HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        proxy = subprocess.Popen([program, *words[1:]], stdout=log, stderr=log, env=environ)
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:

                def answers() -> bool:
                    assert proxy.poll() is None, (folder / "log").read_text()
                    try:
                        return client.get("/runvitals/readyz").status_code == 200
                    except httpx.TransportError:
                        return False

                eventually(answers)
                token, _ = served.metadata_store.tokens.create("proxy", 1)
                client.headers["authorization"] = f"Bearer {token}"
                yield client
        finally:
            proxy.terminate()
            proxy.wait(PATIENCE_S)
            server.handle_exit(2, None)
            thread.join(PATIENCE_S)


@pytest.mark.parametrize("kind", ["nginx", "caddy"])
def test_what_is_documented_works(kind: str, tmp_path: Path) -> None:
    with below(kind, tmp_path) as client:
        assert client.get("/runvitals").next_request is not None
        assert client.get("/runvitals", follow_redirects=True).url.path == "/runvitals/"
        assert client.get("/runvitals/api/v1/about").json()["kind"] == "server"
        answer = client.get("/runvitals/api/v1/runs/a%2Fb")
        assert (answer.status_code, "a/b" in answer.json()["error"]) == (404, True)
        token = client.headers.pop("authorization").removeprefix("Bearer ")
        asked = client.get("/runvitals/projects/a%2Fb?x=1", headers={"accept": "text/html"})
        assert asked.next_request is not None
        assert asked.next_request.url.raw_path == b"/runvitals/login?next=%2Fprojects%2Fa%252Fb%3Fx%3D1"
        entered = client.post(asked.next_request.url, data={"token": token})
        assert "; Path=/runvitals/;" in entered.headers["set-cookie"]
        assert entered.next_request is not None
        assert entered.next_request.url.raw_path == b"/runvitals/projects/a%2Fb?x=1"
