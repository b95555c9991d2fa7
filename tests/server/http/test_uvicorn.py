"""The installed uvicorn has the internals that `runvitals.server.http.connection` builds on."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Collection

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from runvitals.server.http import connection

PROTOCOL = [
    "access_log",
    "access_logger",
    "app",
    "app_state",
    "client",
    "connections",
    "cycle",
    "expect_100_continue",
    "flow",
    "headers",
    "logger",
    "loop",
    "parser",
    "pipeline",
    "scope",
    "server_state",
    "transport",
    "connection_lost",
    "connection_made",
    "data_received",
    "on_body",
    "on_header",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
    "on_response_complete",
    "on_url",
    "_start_asgi_task",
]
CYCLE_ARGUMENTS = [
    "scope",
    "transport",
    "flow",
    "logger",
    "access_logger",
    "access_log",
    "default_headers",
    "message_event",
    "expect_100_continue",
    "keep_alive",
    "on_response",
]
CYCLE = [
    "body",
    "disconnected",
    "keep_alive",
    "message_event",
    "more_body",
    "response_complete",
    "response_started",
    "scope",
]
FLOW = ["resume_reading", "write_paused"]
STATE = ["connections", "default_headers", "total_requests"]
SERVER = ["handle_exit", "on_tick", "server_state"]


async def application(scope: object, receive: object, send: object) -> None:
    raise AssertionError("no request is made")


def missing(from_what: object, names: Collection[str]) -> str:
    """Why the test fails: which names are missing, from what."""
    lacking = [name for name in names if not hasattr(from_what, name)]
    return f"uvicorn {uvicorn.__version__}: {type(from_what).__name__} has no {lacking}" if lacking else ""


def test_uvicorn_has_the_internals_that_connections_use() -> None:
    async def look() -> list[str]:
        config, state = uvicorn.Config(application), ServerState()
        protocol = HttpToolsProtocol(config, state, {}, asyncio.get_running_loop())
        flow = FlowControl(asyncio.Transport())
        arguments = dict.fromkeys(CYCLE_ARGUMENTS)
        cycle = RequestResponseCycle(**arguments)  # type: ignore[arg-type]
        return [
            missing(protocol, PROTOCOL),
            missing(cycle, CYCLE),
            missing(flow, FLOW),
            missing(state, STATE),
            missing(uvicorn.Server(config), SERVER),
        ]

    expected = set(inspect.signature(RequestResponseCycle).parameters)
    assert expected == set(CYCLE_ARGUMENTS), (
        f"uvicorn {uvicorn.__version__}: RequestResponseCycle({expected})"
    )
    assert [problem for problem in asyncio.run(look()) if problem] == []


@pytest.mark.parametrize("name", [*PROTOCOL, *CYCLE, *FLOW, *STATE, *SERVER])
def test_the_module_documents_the_internals_it_uses(name: str) -> None:
    assert connection.__doc__ is not None
    assert name in connection.__doc__


def test_a_missing_attribute_is_named() -> None:
    assert missing(ServerState(), ["connections", "gone"]).endswith("ServerState has no ['gone']")
