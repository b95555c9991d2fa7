"""A page whose server is restarted shows what happened meanwhile, without being loaded again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runvitals.server.http.serve import Server, listen
from runvitals.server.local_app import create_app
from tests.patience import PATIENCE_S
from tests.readers.journals.journals import Monitor
from tests.server.browser import Browser
from tests.server.pages.test_page import browser, now_ms, static  # noqa: F401
from tests.server.test_build import hook  # noqa: F401


@contextmanager
def serving(directory: Path, static: str, port: int = 0) -> Iterator[int]:  # noqa: F811
    """A server on a port, or on a free one; yields the port."""
    listener = listen(port)
    server = Server(create_app(str(directory), static=static))
    with listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.handle_exit(2, None)
            thread.join(timeout=PATIENCE_S)


def test_a_restarted_server(browser: Browser, tmp_path: Path, static: str) -> None:  # noqa: F811
    monitor = Monitor(tmp_path, start_ms=now_ms())
    monitor.sample(now_ms(), {"cpu": 7.0})
    with serving(tmp_path, static) as port:
        browser.base = f"http://127.0.0.1:{port}"
        browser.open("/runs/abc/system")
        browser.wait("""document.querySelector('figure[aria-label^="CPU"]')?.innerText.includes('7%')""")
        browser.wait("document.querySelector('.head .link.open')")
        browser.evaluate("window.neverLoadedAgain = true")
    monitor.sample(now_ms(), {"cpu": 21.0, "system.load1": 3.0})
    browser.wait("document.querySelector('main').innerText.includes('The server does not respond')")
    assert not browser.evaluate("document.querySelector('.head .link.open')")  # it is live no longer
    # A tab whose code is not loaded yet.
    browser.evaluate("document.querySelector('nav.tabs a[href$=alerts]').click()")
    browser.wait("document.querySelector('main').innerText.includes('Alerts: The server does not respond')")
    with serving(tmp_path, static, port):
        browser.wait("document.querySelector('main').innerText.includes('No alerts')")
        browser.evaluate("document.querySelector('nav.tabs a[href$=system]').click()")
        browser.wait("""document.querySelector('figure[aria-label^="CPU"]')?.innerText.includes('21%')""")
        browser.wait("""document.querySelector('figure[aria-label^="Load"]')""")  # it was not there before
        browser.wait("!document.querySelector('main').innerText.includes('The server does not respond')")
        monitor.sample(now_ms(), {"cpu": 22.0, "system.load1": 3.0})
        browser.wait("""document.querySelector('figure[aria-label^="CPU"]')?.innerText.includes('22%')""")
        assert browser.evaluate("window.neverLoadedAgain")
        browser.leave()
    browser.complaints.clear()  # it reports connections that were refused


def test_a_page_that_is_opened_before_its_server_runs_again(
    browser: Browser,  # noqa: F811
    tmp_path: Path,
    static: str,  # noqa: F811
) -> None:
    """The run could not be loaded: its page tries again, and says so until then."""
    Monitor(tmp_path, start_ms=now_ms()).sample(now_ms(), {"cpu": 7.0})
    with serving(tmp_path, static) as port:
        browser.base = f"http://127.0.0.1:{port}"
        browser.open("/runs/abc/system")
        browser.wait("document.querySelector('figure canvas')")
        browser.evaluate("document.querySelector('a[href=\"/runs\"]').click()")
        browser.wait("document.querySelector('tbody a')")
    browser.evaluate("document.querySelector('tbody a').click()")
    browser.wait("document.querySelector('main').innerText.includes('The server does not respond')")
    with serving(tmp_path, static, port):
        browser.wait("""document.querySelector('figure[aria-label^="CPU"]')?.innerText.includes('7%')""")
        browser.leave()
    browser.complaints.clear()
