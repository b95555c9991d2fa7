"""`runvitals ui`: the runs of this machine in a browser."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import webbrowser

from runvitals.base.terminal_text import inert
from runvitals.cli import quick_start
from runvitals.cli.argument_types import add_server_path, integer_between
from runvitals.cli.data_folder import add_dir, directory
from runvitals.sdk.integrations.notebook_launcher import SECRET

DEFAULT_PORT = 8900


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals ui`."""
    parser.description = "Serves on loopback only, until Ctrl-C."
    parser.add_argument(
        "--port",
        type=integer_between(0, 65535),
        help=f"default: {DEFAULT_PORT}, or any free port if that is in use",
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    add_server_path(parser)
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve the runs on loopback until Ctrl-C, and open the browser; return 0."""
    with quick_start.for_imports():
        from runvitals.relay.edit_delivery import deliver_edits
        from runvitals.server.http import allocator, serve
        from runvitals.server.http.shown_elsewhere import link_through
        from runvitals.server.local_app import create_app
    allocator.keep_little()
    port = DEFAULT_PORT if arguments.port is None else arguments.port
    folder = directory(arguments)
    try:
        listener = serve.listen(port)
    except OSError as error:
        if arguments.port is not None:
            raise OSError(f"port {port} on 127.0.0.1: {error.strerror}") from None
        print(f"port {port} is in use ({error.strerror}); using a free port", file=sys.stderr)
        listener = serve.listen(0)
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}/"
    print(f"runvitals: {url} shows the runs in {inert(folder)}; press Ctrl-C to stop", flush=True)
    secret = os.environ.get(SECRET) or secrets.token_urlsafe(24)
    if not arguments.no_browser and _has_display():
        webbrowser.open(url)
    elif SECRET not in os.environ:
        link = link_through(os.environ, port, secret, arguments.path)
        print(f"  through a notebook server: {inert(link)}", flush=True)
    app = create_app(folder, edited=lambda run_id: deliver_edits(run_id, folder), secret=secret)
    serve.serve(app, listener, path=arguments.path)
    return 0


def _has_display() -> bool:
    """Return whether a graphical browser can be opened, rather than a text browser in this terminal."""
    return sys.platform in ("win32", "darwin") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
