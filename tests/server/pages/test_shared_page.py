"""The page of a shared server in a real browser: many runs, and what a user can do to them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from runvitals.model.ending import Ending
from runvitals.server.build import ServerOptions, build_server
from runvitals.server.http.serve import Server
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import Monitor, Training
from tests.server.browser import Browser
from tests.server.page_port import listen_for_page
from tests.server.pages.test_page import EVIL, browser, live_run, now_ms, static, type_into  # noqa: F401
from tests.server.stored_runs import StoredServer
from tests.server.test_build import hook  # noqa: F401

Serve = Callable[..., Browser]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StoredServer]:
    shared = StoredServer(tmp_path / "server")
    shared.now_ms = now_ms()
    yield shared
    shared.close()


@contextmanager
def serving(shared: StoredServer, static: str, **how: bool) -> Iterator[str]:  # noqa: F811
    app = build_server(shared.store, shared.metadata_store, ServerOptions(static=static, **how))
    listener = listen_for_page()
    running = Server(app)
    with listener:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            running.handle_exit(2, None)
            thread.join(timeout=PATIENCE_S)
            app.close()


@pytest.fixture
def serve(server: StoredServer, browser: Browser, static: str) -> Iterator[Serve]:  # noqa: F811
    """Starts the server; gives the browser, at it. In the end the page must have complained of nothing."""
    with ExitStack() as stack:

        def begin(**how: bool) -> Browser:
            browser.base = stack.enter_context(serving(server, static, **how))
            browser.complaints.clear()
            browser.resize(1280, 900)
            return browser

        yield begin
        browser.leave()
    assert browser.complaints == []


def many_runs(shared: StoredServer, count: int) -> None:
    """Runs `run-0` … that are over, the first the oldest; each tenth failed."""
    start_ms = now_ms() - count * 60_000
    joined = shared.metadata_store.writers.join(
        [
            WriterRegistration(
                f"run-{i}", "monitor.node1.1", project=f"p{i % 3}", role="monitor", started_ms=start_ms + i
            )
            for i in range(count)
        ],
        start_ms,
    )
    reported = [
        SectionUpdate(who.run_id, "run", {"name": f"name {i}"}, start_ms) for i, who in enumerate(joined)
    ]
    shared.metadata_store.sections.merge(reported)
    shared.metadata_store.writers.record_ends(
        [
            WriterEnd(
                who.writer_id, Ending("failed", 1) if i % 10 == 0 else Ending("finished", 0), start_ms + i
            )
            for i, who in enumerate(joined)
        ]
    )


def rows(page: Browser) -> list[str]:
    texts: list[str] = page.evaluate("[...document.querySelectorAll('tbody .name')].map(e => e.innerText)")
    return texts


def click(page: Browser, selector: str, text: str = "") -> None:
    """The first element that fits and says that. As for a user, what is disabled or behind an open dialog
    must wait.
    """
    page.wait(
        f"(e => e && (e.click(), true))([...document.querySelectorAll({selector!r})]"
        f".find(e => !e.disabled && e.innerText.startsWith({text!r})"
        " && (e.closest('dialog') || !document.querySelector('dialog[open]'))))"
    )


def shown(page: Browser, text: str, within: str = "main") -> None:
    page.wait(f"document.querySelector({within!r})?.innerText.includes({text!r})")


def test_the_login_redirects_back(serve: Serve, server: StoredServer, tmp_path: Path) -> None:
    live_run(tmp_path, 2, name="the one")
    server.take(tmp_path)
    secret = server.metadata_store.tokens.create("tests", now_ms())[0]
    page = serve(token_required=True)
    page.open("/runs/abc/overview?charts=gpu%20x")
    for typed in ("rvt_wrong", secret):
        page.wait("document.querySelector('#token')?.value === ''")
        page.wait(
            "getComputedStyle(document.querySelector('button')).fontWeight == '600'"
        )  # it has its style
        type_into(page, "#token", typed)
        click(page, "button", "Log in")
        if typed != secret:
            shown(page, "Invalid or revoked token", "[role=alert]")
    shown(page, "the one", "h1")
    assert page.evaluate("location.pathname + location.search") == "/runs/abc/overview?charts=gpu%20x"
    assert [text for text in page.complaints if "403" not in text] == []
    page.complaints.clear()

    page.open("/login")  # away from what asks again by itself
    page.wait("document.querySelector('#token')")
    page.call("Network.clearBrowserCookies")
    page.open("/")  # the page itself requires the token too
    page.wait("location.pathname === '/login'")


def test_runs_are_searched_and_sorted_by_the_server(serve: Serve, server: StoredServer) -> None:
    many_runs(server, 250)
    page = serve()
    page.open("/runs")
    page.wait("document.querySelector('[role=status]')?.innerText === '250'")
    assert rows(page)[0] == "name 249"
    click(page, "th .sorts", "Run")
    page.wait("document.querySelector('th[aria-sort=ascending]')?.innerText.startsWith('Run')")
    page.wait("document.querySelector('tbody .name')?.innerText === 'name 0'")
    click(page, ".states button", "failed")
    page.wait("document.querySelectorAll('tbody tr').length == 25")
    assert page.evaluate("location.search") == "?sort=name&q=state%3Afailed"
    type_into(page, "input[type=search]", ' "name 24"')
    page.wait("document.querySelectorAll('tbody tr').length == 1")
    assert rows(page) == ["name 240"]
    type_into(page, "input[type=search]", " nothing")
    shown(page, "No runs match.")
    click(page, "button", "Show all")
    page.wait("document.querySelector('[role=status]')?.innerText === '250'")
    click(page, "nav[aria-label=Projects] a", "p1")
    page.wait("document.querySelector('h1')?.innerText == 'p1'")


def test_a_run_is_stopped_after_confirmation(serve: Serve, server: StoredServer, tmp_path: Path) -> None:
    training = live_run(tmp_path, 5, PATIENCE_S, name="long one")
    server.take(tmp_path)
    page = serve()
    page.open("/runs/abc")
    page.wait(
        "(e => e && (e.focus(), true))"
        "([...document.querySelectorAll('.actions button')].find(e => e.innerText.startsWith('Stop')))"
    )
    click(page, "button", "Stop")
    assert page.text("dialog h2") == "Stop long one?"
    assert page.evaluate("document.activeElement.innerText") == "Cancel"
    page.press("Escape")
    page.wait("!document.querySelector('dialog')")
    assert page.evaluate("document.activeElement.innerText") == "Stop …"
    assert server.ask("runs/abc")["stop_requested_ms"] is None
    click(page, "button", "Stop")
    click(page, "dialog button", "Stop the run")
    shown(page, "stop requested", ".head")
    page.wait("!document.querySelector('dialog')")
    assert "Stop …" not in page.text(".head")
    page.wait("fetch('/api/v1/runs/abc').then(a => a.json()).then(run => run.stop_requested_ms !== null)")
    page.open("/runs")
    shown(page, "stop requested", "tbody")

    page.open("/runs/abc")
    shown(page, "running", ".head")
    training.end("stopped", exit_code=0)
    server.take(tmp_path)
    shown(page, "stopped", ".head")
    page.wait("!document.querySelector('.head').innerText.includes('stop requested')")


def test_a_run_is_edited_deleted_and_restored(serve: Serve, server: StoredServer, tmp_path: Path) -> None:
    training = live_run(tmp_path, 5, PATIENCE_S, name=EVIL, project="digits", tags=("one", "a, b"))
    training.end("finished", exit_code=0)
    server.take(tmp_path)
    page = serve()
    page.open("/runs/abc/overview")
    click(page, "button", "Edit")
    assert EVIL in page.text("dialog h2")
    assert page.evaluate("document.querySelector('dialog input').value") == EVIL
    assert page.evaluate("document.querySelectorAll('textarea')[1].value") == "one\na, b"
    page.evaluate("document.querySelectorAll('textarea')[1].select()")
    page.call("Input.insertText", text=f"a, b\n{EVIL}")
    click(page, "dialog button", "Save")
    page.wait("!document.querySelector('dialog')")
    page.wait("[...document.querySelectorAll('.facts .tag')].length == 2")
    run = server.ask("runs/abc")
    assert (run["tags"], run["name"], run["notes"]) == (["a, b", EVIL], EVIL, "first try")

    click(page, "button", "Delete")
    assert "moved to the trash" in page.text("dialog p")
    click(page, "dialog button", "Move to trash")
    shown(page, f"{EVIL} is in the trash.")
    assert page.evaluate("location.pathname") == "/projects/digits"
    shown(page, "No runs yet")
    click(page, "button", "Restore")
    page.wait("document.querySelectorAll('tbody tr').length == 1")

    assert server.request("DELETE", "/api/v1/runs/abc", json={}).status_code == 200
    click(page, "a.trash")
    assert page.text("h1") == "Trash"
    page.wait("document.querySelector('tbody button')")
    assert page.evaluate("document.querySelectorAll('tbody a').length") == 0
    click(page, "tbody button", "Restore")
    shown(page, "The trash is empty.")
    assert server.ask("runs/abc")["name"] == EVIL
    assert page.evaluate("document.querySelectorAll('main img').length") == 0
    # What the run's page had asked for just before it was deleted.
    page.complaints[:] = [text for text in page.complaints if "404" not in text or "/runs/abc/" not in text]


def test_a_rejection_is_shown_in_the_dialog(serve: Serve, server: StoredServer, tmp_path: Path) -> None:
    training = live_run(tmp_path, 5, PATIENCE_S)
    server.take(tmp_path)
    page = serve()
    page.open("/runs/abc")
    click(page, "button", "Stop")
    training.end("finished", exit_code=0)
    server.take(tmp_path)
    click(page, "dialog button", "Stop the run")
    shown(page, "only a running run can be stopped", "dialog [role=alert]")
    assert [text for text in page.complaints if "409" not in text] == []
    page.complaints.clear()


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_a_phone(
    serve: Serve, server: StoredServer, tmp_path: Path, dark: bool
) -> None:
    many_runs(server, 120)
    Training(tmp_path, "bin").end("finished", exit_code=0)
    live_run(tmp_path, 5, PATIENCE_S, name="a-name-without-any-place-to-break-it-" * 3)
    busy = Monitor(tmp_path, "busy", start_ms=now_ms() - 4_790_000)
    busy.sample(now_ms(), {"cpu": 100.0, "memory_percent": 100.0, "gpu.0.gpu": 100.0})
    busy.end(now_ms(), "finished")
    for run in ("abc", "bin", "busy"):
        server.take(tmp_path, run)
    server.request("DELETE", "/api/v1/runs/bin", json={})
    page = serve()
    page.resize(390, 800, dark)
    for view in ("/runs", "/runs?trash=1"):
        page.open(view)
        page.wait("document.querySelector('tbody tr')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.open("/runs/abc")
    for button in ("Stop", "Edit", "Delete"):
        click(page, ".actions button", button)
        page.wait("document.querySelector('dialog')")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        click(page, "dialog button", "Cancel")
        page.wait("!document.querySelector('dialog')")


def test_every_metric_of_a_run_with_very_many_can_be_found(serve: Serve, server: StoredServer) -> None:
    (who,) = server.metadata_store.writers.join(
        [WriterRegistration("wide", "monitor.node1.1", "digits", started_ms=now_ms())], now_ms()
    )
    keys = (*(f"layer.{n:05}" for n in range(10_050)), "needle.Sharpness")
    server.append(who, keys, np.array([now_ms()]), np.ones((1, len(keys))))
    page = serve()
    page.open("/runs/wide")
    page.wait("document.querySelector('main')?.innerText.includes('10,000 metrics are loaded')")
    assert page.evaluate("document.querySelectorAll('.place').length") <= 200
    type_into(page, '[aria-label="Filter charts"]', "sharp")
    page.wait("""document.querySelector('figure[aria-label^="needle.Sharpness"]')""")
    page.open("/runs/wide")
    page.wait("[...document.querySelectorAll('button')].some(one => one.innerText === 'Load more metrics')")
    page.evaluate(
        "[...document.querySelectorAll('button')].find(one => one.innerText === 'Load more metrics').click()"
    )
    page.wait("!document.querySelector('main').innerText.includes('metrics are loaded')")
