"""The page with names and values that nobody expects: it stays readable, and an error takes one part only."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.server.browser import Browser, keep_picture
from tests.server.pages.test_page import browser, static  # noqa: F401
from tests.server.serving import Served, serving
from tests.server.test_build import hook  # noqa: F401

LONG = "W" * 20_000
# Without the event stream: its first event would bring the true facts.
BROKEN = """
window.fetch = ((real) => async (url, how) => {{
    if (String(url).includes("/live")) return new Promise(() => undefined);
    const answer = await real(url, how);
    if (!String(url).includes({path})) return answer;
    const body = await answer.json();
    for (const run of body.runs ?? [body]) run[{field}] = {value};
    return new Response(JSON.stringify(body), {{status: answer.status, headers: answer.headers}});
}})(window.fetch)
"""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, static: str) -> Iterator[Served]:  # noqa: F811
    with serving(tmp_path_factory.mktemp("served"), static=static) as served:
        send(served, "plain", tags=["one"], name="a plain run")
        send(served, "hostile", tags=["a", "a", "", "é" * 256], name="W" * 256)
        send(served, "__proto__", host="constructor", name="\u202eeman" + "\u0301" * 40)
        for role in ("other", "monitor"):  # two roles of one host with the same keys
            send(served, "roles", role=role)
        yield served


def send(
    served: Served,
    run: str,
    role: str = "monitor",
    tags: list[str] | None = None,
    name: str = "",
    host: str = "h" * 200,
) -> None:
    begin = now_ms() - 100_000
    t = [begin + 1000 * tick for tick in range(100)]
    keys = ["cpu", "memory_percent", "x" * 512, "gpu.0.gpu", "constructor", "__proto__"]
    about: dict[str, Any] = {"name": name or run, "tags": tags or [], "notes": LONG}
    facts = {
        "t": begin,
        "run": about,
        "config": {"k" * 500: LONG, "deep": {"a": [{"b": [1, {"c": None}]}]}, "": ""},
        "summary": {"loss": LONG},
        "machine": {"hostname": "n" * 250, "command": [LONG]},
        "sources": {"s" * 200: {"state": "failing", "reason": LONG}},
    }
    event = {"t": begin + 5, "name": "e" * 200, "level": "error", "text": LONG}
    envelope = {
        "run": run,
        "writer": f"{role}.{host[:60]}.1",
        "seq": 1,
        "about": {"role": role, "host": host, "interval_s": 60},
        "keys": keys,
        "t": t,
        "v": [[float(tick % 7) for tick in range(100)] for _ in keys],
        "records": [[1, "info", facts], [2, "event", event]],
    }
    httpx.post(f"{served.url}/api/v1/ingest", json=envelope, timeout=PATIENCE_S).raise_for_status()


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Browser]:  # noqa: F811
    browser.base = served.url
    browser.complaints.clear()
    browser.resize(1280, 900)
    yield browser
    browser.leave()


def too_wide(page: Browser) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", "document.querySelectorAll('main li').length >= 2"),
        ("/runs", "document.querySelectorAll('tbody tr').length === 4"),
        ("/hosts", "document.querySelector('tbody tr')"),
        ("/hosts/constructor", "document.querySelectorAll('figure canvas').length >= 1"),
        ("/runs/__proto__", "document.querySelectorAll('figure canvas').length >= 2"),
        ("/runs/hostile", "document.querySelectorAll('figure canvas').length >= 1"),
        ("/runs/hostile/overview", "document.querySelectorAll('dl').length >= 3"),
        ("/runs/hostile/logs", "document.querySelector('.empty')"),
        ("/runs/roles", "document.querySelectorAll('figure canvas').length >= 2"),
    ],
)
def test_names_of_any_length_and_content(page: Browser, path: str, shown: str, width: int) -> None:
    page.resize(width, 900)
    page.open(path)
    page.wait(shown)
    keep_picture(page, f"{path.strip('/').replace('/', '-') or 'list'}-{width}")
    assert too_wide(page) <= 0
    assert page.complaints == []
    assert not page.evaluate("document.body.innerText.includes('cannot be shown')")


def test_the_same_key_of_two_roles_is_two_lines(page: Browser) -> None:
    page.open("/runs/roles/system?charts=CPU")
    page.wait("document.querySelector('figure canvas')")
    labels = page.wait(
        "(l => l.length === 2 && l)([...document.querySelectorAll('figure[aria-label^=\"CPU,\"] .label')]"
        ".map(e => e.innerText))"
    )
    assert [label.rpartition(" ")[2] for label in labels] == ["(monitor)", "(other)"]


@pytest.mark.parametrize(
    ("path", "field", "value", "shown", "gone"),
    [
        ("/", "hosts", "null", "Run", "cannot be shown"),
        ("/runs/plain/overview", "summary", "null", "Events", "The summary cannot be shown"),
        ("/runs/plain/overview", "config", "{a: undefined, b: {c: 1n && 1}}", "Events", ""),
        ("/runs/plain/overview", "machines", "{h: null}", "Events", "The machine h cannot be shown"),
        ("/runs/plain/overview", "events", "null", "runvitals", "The page cannot be shown"),
        ("/runs/plain", "sources", "null", "a plain run", "System charts cannot be shown"),
    ],
)
def test_an_error_replaces_one_part_with_its_reason(
    page: Browser, path: str, field: str, value: str, shown: str, gone: str
) -> None:
    requested = "/runs" if path == "/" else "runs/plain"
    script = BROKEN.format(path=json.dumps(requested), field=json.dumps(field), value=value)
    added = page.call("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
    try:
        page.open(path)
        expected = json.dumps(gone or shown)
        text = page.wait(f"(text => text.includes({expected}) && text)(document.body?.innerText ?? '')")
        assert shown in text
        assert "Loading" not in text
        if gone:
            reason = text.partition("cannot be shown: ")[2].splitlines()[0]
            assert len(reason) > 10
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added)
