"""`runvitals login`: store the key for a server."""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import sys

from runvitals.cli.formatting import inert
from runvitals.monitoring.settings.settings import SETTINGS


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals login`."""
    parser.description = (
        "Shows a code that you confirm in the browser if the server has accounts; otherwise asks "
        "for a token or key, or reads a line from standard input if that is not a terminal. Checks it with "
        "the server, and stores it in a file that only you can read. RUNVITALS_TOKEN takes precedence for "
        "the server in RUNVITALS_SERVER."
    )
    parser.add_argument("url", metavar="URL", help="the server: http://host[:port] or https://…")
    parser.add_argument("--paste", action="store_true", help="ask for a key, without the browser")


def run(arguments: argparse.Namespace) -> int:
    """Get a key from the browser or the terminal, check it with the server, and store it; return 0."""
    from runvitals.base import stored_keys

    url = SETTINGS["server"].parse(arguments.url, "argument")
    secret = None if arguments.paste or not sys.stdin.isatty() else _by_browser(url)
    if secret is None:
        secret = _read_pasted(url)
    stored_keys.check(url, secret)
    print(f"token stored in {inert(stored_keys.save(url, secret, os.environ))}")
    return 0


def _by_browser(url: str) -> str | None:
    """Return a key that the user allowed in the browser; None if the server has no accounts."""
    from runvitals.relay.destinations.runvitals.browser_sign_in import BrowserSignIn

    sign_in = BrowserSignIn(url)
    code = sign_in.begin(platform.node()[:64] or "unknown machine")
    if code is None:
        return None
    print(f"open {inert(code.page)} in a browser, sign in, and enter the code {inert(code.code)}", flush=True)
    key = sign_in.wait(code)
    print(f"signed in as {inert(key.user)}")
    return key.key


def _read_pasted(url: str) -> str:
    """Read a token or key from the terminal, or from standard input.

    Raises:
        ValueError: it cannot be a token.
    """
    secret = getpass.getpass(f"token for {url}: ") if sys.stdin.isatty() else sys.stdin.readline()
    secret = secret.strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        # Not "invalid token: …": redaction would take the next word for the token.
        raise ValueError(
            "the token is not valid; expected rvt_…, as printed by `runvitals token create NAME`, or a key, "
            "rvt-…, as the server's page shows it once"
        )
    return secret
