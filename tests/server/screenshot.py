"""A picture of a run's page, for the README: `scripts/screenshot [RUN]`."""

from __future__ import annotations

import argparse
import threading

from runvitals.journal.paths import data_dir
from runvitals.readers.journals.run_handle import find_run
from runvitals.server.http.serve import Server, listen
from runvitals.server.local_app import create_app
from tests.server.browser import Browser


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/screenshot", description=__doc__)
    parser.add_argument("run", nargs="?", default="latest", help="a run of the data folder; default: latest")
    parser.add_argument("-o", "--output", default="docs/screenshot.png", help="default: docs/screenshot.png")
    parser.add_argument("--dark", action="store_true", help="in dark colours")
    arguments = parser.parse_args()
    run = find_run(arguments.run)
    listener = listen(0)
    server = Server(create_app(data_dir()))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    with listener, Browser() as browser:
        thread.start()
        try:
            browser.base = f"http://127.0.0.1:{listener.getsockname()[1]}"
            browser.resize(1280, 860, arguments.dark, scale=1.5)
            browser.open(f"/runs/{run}/system")
            browser.wait("document.querySelectorAll('figure canvas').length >= 6")
            browser.wait("new Promise(drawn => setTimeout(() => drawn(true), 500))")
            browser.screenshot(arguments.output)
        finally:
            server.handle_exit(2, None)
            thread.join()
    print(f"{arguments.output}: run {run}")


if __name__ == "__main__":
    main()
