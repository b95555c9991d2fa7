"""`runvitals mcp` does for an assistant what the user's key allows: over stdio and HTTP, against a server."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from runvitals.server.audit.storage.audit import CLI
from tests.patience import PATIENCE_S
from tests.server.accounts_server import T0, AccountsServer, accounts_server
from tests.server.conftest import with_team
from tests.server.projects.routes.conftest import add_run
from tests.tools.assistant.conftest import ask, refusal


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsServer]:
    """A server whose team vision has a run of bob, who is a member; eve may look, mallory is a stranger."""
    with accounts_server(tmp_path_factory.mktemp("server"), fill=with_team) as running:
        add_run(running, "run-bob", "digits", "bob")
        yield running


def key_of(server: AccountsServer, name: str, scope: str = "full") -> str:
    return created_key(server, name, scope)[0]


def created_key(server: AccountsServer, name: str, scope: str) -> tuple[str, int]:
    user = server.accounts.users.by_name(name)
    secret, key = server.accounts.keys.create(f"{name} {scope}", CLI, T0, user_id=user.id, scope=scope)
    server.app.services.access.rights_changed()
    return secret, key.id


def environment(server: AccountsServer, folder: Path, key: str | None) -> dict[str, str]:
    variables = {"RUNVITALS_SERVER": server.url, "XDG_CONFIG_HOME": str(folder), "HOME": str(folder)}
    return {**variables, **({"RUNVITALS_TOKEN": key} if key else {})}


def stdio(server: AccountsServer, folder: Path, key: str) -> Client:
    command = ["-m", "runvitals", "mcp", "--write"]
    variables = environment(server, folder, key)
    return Client(StdioServerParameters(command=sys.executable, args=command, env=variables, cwd=folder))


def test_a_reader_and_a_stranger_over_stdio(server: AccountsServer, tmp_path: Path) -> None:
    keys = {name: key_of(server, name) for name in ("eve", "mallory")}

    async def as_reader() -> None:
        async with stdio(server, tmp_path, keys["eve"]) as client:
            assert "stop_run" in {tool.name for tool in (await client.list_tools()).tools}
            listed = await ask(client, "list_runs")
            assert [(run["id"], run["entity"]) for run in listed["runs"]] == [("run-bob", "vision")]
            shown = await ask(client, "show_run", run="vision/run-bob")
            assert shown["may"] == []
            assert (await ask(client, "usage"))["sums"]["runs"] == 0
            assert "may not" in await refusal(client, "usage", own=False)
            for tool, change in (
                ("change_tags", {"add": ["mine"]}),
                ("write_notes", {"notes": "mine"}),
                ("stop_run", {}),
            ):
                assert "may not" in await refusal(client, tool, run="run-bob", **change)

    async def as_stranger() -> None:
        async with stdio(server, tmp_path, keys["mallory"]) as client:
            assert (await ask(client, "list_runs"))["runs"] == []
            hidden = await refusal(client, "show_run", run="run-bob")
            assert hidden.replace("run-bob", "nothing") == await refusal(client, "show_run", run="nothing")

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(as_reader)
            tasks.start_soon(as_stranger)

    anyio.run(both)


def test_a_key_that_is_revoked_meanwhile(server: AccountsServer, tmp_path: Path) -> None:
    secret, key_id = created_key(server, "bob", "read")

    async def with_key() -> None:
        async with stdio(server, tmp_path, secret) as client:
            assert len((await ask(client, "list_runs"))["runs"]) == 1
            assert "may not" in await refusal(client, "write_notes", run="run-bob", notes="mine")
            server.accounts.keys.revoke(key_id, CLI, T0)
            server.app.services.access.rights_changed()
            refused = await refusal(client, "list_runs")
            assert "is not, or no longer, valid" in refused
            assert secret not in refused

    anyio.run(with_key)


@contextmanager
def over_http(server: AccountsServer, folder: Path) -> Iterator[str]:
    """The address of `runvitals mcp --port 0` of a user who has no key."""
    command = [sys.executable, "-m", "runvitals", "mcp", "--write", "--port", "0"]
    variables = {**environment(server, folder, None), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, env=variables, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()
        assert process.wait() == 0


def test_each_request_over_http_has_the_rights_of_its_key(server: AccountsServer, tmp_path: Path) -> None:
    key = key_of(server, "bob")

    async def ask_with(address: str, key: str | None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            if key is None:
                assert "runvitals login" in await refusal(client, "list_runs")
            else:
                assert (await ask(client, "change_tags", run="run-bob", add=["kept"]))["tags"] == ["kept"]

    with over_http(server, tmp_path) as address:
        anyio.run(ask_with, address, key)
        anyio.run(ask_with, address, None)
        for method, headers, body, status in (
            ("POST", {"Host": "rebound.example"}, b"{}", 403),
            ("POST", {"Origin": "https://evil.example"}, b"{}", 403),
            ("GET", {}, b"", 405),
            ("POST", {"Content-Type": "application/json"}, b"[" * 100_000, 400),
            ("POST", {"Content-Type": "application/json"}, b" " * 10_000_000, 413),
            ("POST", {"X-Long": "x" * 100_000}, b"{}", 431),
        ):
            how = {"headers": {"Accept": "application/json, text/event-stream", **headers}, "content": body}
            answer = httpx.request(method, address, timeout=PATIENCE_S, **how)
            assert answer.status_code == status, (method, headers, answer.text[:100])
