"""The command `runvitals ui`."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from runvitals.cli import main
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import T0, Monitor


@pytest.fixture
def used_port() -> Iterator[int]:
    """A port that is in use."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """(the command, its first line)"""
    command = [sys.executable, "-m", "runvitals", "ui", "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline()


def test_serves_until_ctrl_c_is_pressed(tmp_path: Path) -> None:
    Monitor(tmp_path, "brave-otter-1").end(T0 + 1)
    process, line = start("--port", "0", "--dir", str(tmp_path))
    url = line.split()[1]
    assert url.startswith("http://127.0.0.1:")
    assert httpx.get(f"{url}api/v1/runs", timeout=PATIENCE_S).json()["runs"][0]["id"] == "brave-otter-1"
    assert process.stdout is not None
    link = process.stdout.readline()
    port = urlsplit(url).port
    assert re.fullmatch(rf" +through a notebook server: https://…/proxy/{port}/\?token=[\w-]{{32}}\n", link)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (0, "", "")


LOCAL_REQUESTS = """
import asyncio, sys
import httpx
from runvitals.server.local_app import create_app

async def main(folder):
    transport = httpx.ASGITransport(create_app(folder))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        for path in ("runs?sort=config.lr&where=summary.loss<1&text=otter", "projects", "runs/brave-otter-1"):
            print((await client.get(f"/api/v1/{path}")).status_code)

asyncio.run(main(sys.argv[1]))
print([name for name in ("sqlalchemy", "alembic", "psycopg") if name in sys.modules])
"""


def test_database_libraries_are_not_imported(tmp_path: Path) -> None:
    Monitor(tmp_path, "brave-otter-1").end(T0 + 1)
    command = [sys.executable, "-c", LOCAL_REQUESTS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.stdout.split("\n"), done.stderr) == (["200", "200", "200", "[]", ""], "")


def test_requested_port_in_use_is_an_error(
    used_port: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ui", "--no-browser", "--port", str(used_port), "--dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"runvitals: port {used_port} on 127.0.0.1: Address already in use\n"


def test_default_port_in_use_is_replaced_by_a_free_one(
    used_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    served = []
    monkeypatch.setattr("runvitals.cli.ui.DEFAULT_PORT", used_port)
    monkeypatch.setattr("runvitals.server.http.serve.serve", lambda app, at, **how: served.append(at))
    assert main(["ui", "--no-browser", "--dir", str(tmp_path)]) == 0
    with served[0] as listener:
        port = listener.getsockname()[1]
    printed = capsys.readouterr()
    assert printed.err == f"port {used_port} is in use (Address already in use); using a free port\n"
    assert f"http://127.0.0.1:{port}/" in printed.out


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_invalid_ports(port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["ui", f"--port={port}"])
    assert "--port" in capsys.readouterr().err


def test_missing_server_extra_is_reported(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['fastapi'] = None; from runvitals.cli import main; sys.exit(main(['ui']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "RUNVITALS_DIR": str(tmp_path)},
    )
    assert done.returncode == 1
    assert done.stderr == (
        "runvitals: ui needs packages that are not installed: pip install 'runvitals[server]' (the first that"
        " is missing is fastapi)\n"
    )


def test_a_missing_extra_is_named_for_any_command(tmp_path: Path) -> None:
    blocked = "sys.modules['cryptography'] = sys.modules['sqlalchemy'] = None"
    for words in (["server", "mail-test", "a@b.c"], ["user", "list"], ["token", "list"]):
        script = f"import sys; {blocked}; from runvitals.cli import main; sys.exit(main({words!r}))"
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            env={**os.environ, "RUNVITALS_DIR": str(tmp_path)},
        )
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert "pip install 'runvitals[server]'" in done.stderr
