"""Lines on stderr."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import anyio
import httpx
import pytest
from starlette.types import Receive, Scope, Send

from runvitals.server.http import logs
from runvitals.server.http.logs import AccessLog, configure


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """What is written, with logging as it was before afterwards."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:], root.level = before
    logging.getLogger("runvitals").setLevel(logging.NOTSET)


class Application:
    """Answers with the status that the path names, after as many seconds as the query says."""

    def __init__(self) -> None:
        self.closing = anyio.Event()
        self.now_s = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.now_s += float(scope["query_string"].rpartition(b"=")[2] or 0)
        if scope["path"] == "/raise":
            raise RuntimeError("it broke\n\x1b[31m")
        status = int(scope["path"].rpartition("/")[2]) if scope["path"][-1].isdigit() else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"x"})


def asked(*paths: str, bearer: str = "rvt_secret") -> None:
    application = Application()
    app = AccessLog(application, lambda: application.now_s)

    async def send() -> None:
        transport = httpx.ASGITransport(app)  # type: ignore[arg-type]
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            for path in paths:
                await client.get(path, headers={"authorization": f"Bearer {bearer}"})

    anyio.run(send)


def test_failed_rejected_and_slow_requests_are_logged(out: io.StringIO) -> None:
    configure("json", out)
    asked("/200", "/200?s=0.9", "/404", "/500", "/api?s=2.5", "/runs/a/live?s=60", "/metrics?wait=20")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(line["level"], line["message"], line["status"], line["seconds"]) for line in lines] == [
        ("warning", "request rejected", 404, 0.0),
        ("error", "request failed", 500, 0.0),
        ("info", "slow request", 200, 2.5),
    ]
    assert (lines[2]["method"], lines[2]["path"], lines[2]["client"]) == ("GET", "/api", "127.0.0.1")
    assert lines[0]["t"].endswith("Z")
    assert "rvt_" not in out.getvalue()
    assert "s=2.5" not in out.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_client_input_is_escaped(out: io.StringIO, form: logs.LogFormat) -> None:
    configure(form, out)
    asked("/a%0Afake%1B%5B31m%E2%80%AE/404")
    (line,) = out.getvalue().splitlines()
    assert line.isprintable()
    if form == "json":
        assert json.loads(line)["path"] == "/a\nfake\x1b[31m\u202e/404"


def test_a_token_in_a_path_is_redacted(out: io.StringIO) -> None:
    configure("text", out)
    asked("/runs/rvt_hunter2hunter2/404")
    assert "path=/runs/***/404" in out.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_is_logged_with_its_traceback(out: io.StringIO, form: logs.LogFormat) -> None:
    configure(form, out)
    try:
        raise RuntimeError("it broke\x1b[31m")
    except RuntimeError:
        logging.getLogger("uvicorn.error").exception("failed")
    if form == "json":
        line = json.loads(out.getvalue())
        assert (line["logger"], line["level"]) == ("uvicorn.error", "error")
        assert line["trace"].endswith("it broke\x1b[31m")
    else:
        first, *rest = out.getvalue().splitlines()
        assert first.endswith(" error failed")
        assert rest[-1] == r"    RuntimeError: it broke\x1b[31m"


def test_log_lines_are_limited(out: io.StringIO) -> None:
    configure("json", out)
    asked(*["/401"] * 300, "/404?s=10")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(lines) == 51
    assert lines[-1]["left_out"] == 250


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_in_errors_are_redacted(out: io.StringIO, form: logs.LogFormat) -> None:
    configure(form, out)
    log = logging.getLogger("runvitals.server")
    try:
        raise OSError("postgresql://me:hunter2hunter2@db refused: password=hunter2hunter2")
    except OSError as error:
        log.error("the metadata store is unavailable: %s", error, exc_info=True)
    assert "hunter2" not in out.getvalue()
    assert "unavailable: postgresql://me:***@db refused: password=***" in out.getvalue()
    assert "test_logs.py" in out.getvalue()
