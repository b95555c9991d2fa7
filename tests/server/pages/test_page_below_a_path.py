"""The page in a real browser, below a path of another server."""

from __future__ import annotations

import threading
from pathlib import Path

from runvitals.server.http.public_path import BelowPath
from runvitals.server.http.serve import Server, listen
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S
from tests.server.browser import Browser
from tests.server.pages.test_page import browser, live_run, static  # noqa: F401
from tests.server.test_build import hook  # noqa: F401

BELOW = "/user/ada@example.org/proxy/8900"
REQUESTED = "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)"
LINKED = "[...document.querySelectorAll('a')].map(({ pathname }) => pathname)"


def test_the_page_below_a_path(browser: Browser, tmp_path: Path, static: str) -> None:  # noqa: F811
    live_run(tmp_path, run_id="r1", interval_s=5)
    app = create_app(str(tmp_path), static=static)
    listener = listen(0)
    server = Server(BelowPath(app, app.state.services.closing, BELOW))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        browser.base = f"http://127.0.0.1:{listener.getsockname()[1]}{BELOW}"
        browser.resize(1280, 900)

        browser.open("/runs/r1/system?charts=cpu")  # a deep address, as after a reload
        browser.wait("document.querySelector('figure canvas')")
        browser.wait("document.querySelector('.link.open')?.innerText === 'live'")

        browser.evaluate("[...document.querySelectorAll('nav a')].find(a => a.innerText === 'Runs').click()")
        browser.wait(
            f"location.pathname === '{BELOW}/runs' && document.querySelector('h1')?.innerText === 'Runs'"
        )
        browser.evaluate("history.back()")
        browser.wait(
            f"location.pathname === '{BELOW}/runs/r1/system' && document.querySelector('figure canvas')"
        )
        browser.evaluate("document.querySelector('a.home').click()")
        browser.wait(
            f"location.pathname === '{BELOW}/' && document.querySelector('h1')?.innerText === 'Home'"
        )
        for paths in (REQUESTED, LINKED):
            found = browser.evaluate(paths)
            assert found
            assert [path for path in found if not path.startswith(f"{BELOW}/")] == []

        browser.base = "about:"
        browser.open("blank")
        server.handle_exit(2, None)
        thread.join(timeout=PATIENCE_S)
    assert browser.complaints == []
