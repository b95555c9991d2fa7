"""`runvitals mcp`: let assistants read runs, over the Model Context Protocol."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from runvitals.base import stored_keys
from runvitals.base.terminal_text import inert
from runvitals.cli import WrongUsage
from runvitals.cli.argument_types import integer_between
from runvitals.cli.data_folder import add_dir, directory
from runvitals.monitoring.settings.settings import resolve

if TYPE_CHECKING:
    from runvitals.tools.assistant.requests import ApiOfKey


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals mcp`."""
    parser.description = (
        "Serves on stdin and stdout, as assistants start it. The runs are those of the server, "
        "with the rights of the stored key; without a server, those of this machine's journals."
    )
    parser.add_argument(
        "--server", metavar="URL", help="the runs of this server; default: the setting `server`, unless --dir"
    )
    parser.add_argument(
        "--write", action="store_true", help="also tools that change tags and notes, and stop runs"
    )
    parser.add_argument(
        "--port", type=integer_between(0, 65535), help="serve HTTP on this port of 127.0.0.1 instead of stdio"
    )
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the assistant leaves, or until Ctrl-C; return 0."""
    from runvitals.tools.assistant.protocol_server import protocol_server

    if arguments.server and arguments.dir:
        raise WrongUsage("expected one of --server and --dir, not both")
    url = arguments.server or (None if arguments.dir else resolve({}, os.environ, os.getcwd())["server"])
    api_of_key = _of_journals(directory(arguments)) if url is None else _of_server(url)
    server = protocol_server(api_of_key, with_server=url is not None, writes=arguments.write)
    if arguments.port is None:
        server.run("stdio")
        return 0
    from runvitals.server.http.serve import listen
    from runvitals.tools.assistant.loopback_http import PATH, serve

    listener = listen(arguments.port)
    address = f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
    what = inert(url or directory(arguments))
    print(
        f"runvitals: {address} is for assistants, about the runs of {what}; Ctrl-C stops it", file=sys.stderr
    )
    serve(server, listener, takes_keys=url is not None)
    return 0


def _of_server(url: str) -> ApiOfKey:
    """Return what makes the API of a server; the stored key is read at each call, so another login counts."""
    from runvitals.tools.assistant.runs_api import ServerApi

    return lambda key: ServerApi(url, key or stored_keys.token(url, os.environ))


def _of_journals(folder: str) -> ApiOfKey:
    from runvitals.relay.edit_delivery import deliver_edits
    from runvitals.server.local_app import journal_app
    from runvitals.tools.assistant.runs_api import JournalApi

    api = JournalApi(journal_app(folder, edited=lambda run_id: deliver_edits(run_id, folder)))
    return lambda key: api
