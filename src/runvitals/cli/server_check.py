"""`runvitals server check`: whether the server could start and store, before it does."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runvitals.base.terminal_text import inert
from runvitals.cli.backup import server_stores
from runvitals.cli.store_options import SECRETS_FILE
from runvitals.monitoring.environment import redaction

if TYPE_CHECKING:
    from runvitals.store.files.bucket_location import BucketLocation

NAME = "check"


def add_action(actions: Any, add_options: Callable[[argparse.ArgumentParser], None]) -> None:
    """Add the action `check` to the server's command, with the options of the server."""
    parser = actions.add_parser(
        NAME,
        help="say whether the server could start: address, settings, stores, buckets, mail, clock",
        description="Checks what a server with the same options would need, a line each; exit code 1 if it "
        "would not start or could not store. Writes only a small object to each bucket, and removes it.",
    )
    add_options(parser)
    for action in parser._actions:  # options before the action stay as they were given
        action.default = argparse.SUPPRESS


def run(arguments: argparse.Namespace) -> int:
    """Print what is found; return 1 if something failed."""
    from runvitals.server.health.start_checks import StartPlan, check_start

    stores = server_stores(arguments)
    plan = StartPlan(
        listen=arguments.listen,
        stores=stores,
        settings=arguments.settings,
        secret_keys=arguments.secret_keys or os.path.join(stores.folder, SECRETS_FILE),
        buckets=_buckets(arguments),
        team_folders=arguments.team_folders,
        environment=os.environ,
    )
    failed = 0
    for check in check_start(plan):
        failed += check.state == "failed"
        print(f"{check.state:6}  {check.what}: {inert(redaction.text(check.text))}", flush=True)
    return 1 if failed else 0


def _buckets(arguments: argparse.Namespace) -> dict[str, BucketLocation]:
    """Return the buckets that options name."""
    from runvitals.store.files.bucket_location import BucketLocation

    buckets = {} if arguments.files is None else {"--files": arguments.files}
    if arguments.cold_storage is not None and "://" in arguments.cold_storage:
        buckets["--cold-storage"] = BucketLocation.read(arguments.cold_storage)
    return buckets
