"""Delivers edits of runs that were delivered before, through the relay of their data folder."""

from __future__ import annotations

from contextlib import closing

from runvitals.base.json_codec import dumps
from runvitals.journal import paths
from runvitals.monitoring.monitor.relay_connection import connect_or_start
from runvitals.monitoring.monitor.socket_address import NO_SIGNAL
from runvitals.monitoring.settings.messages import notify
from runvitals.relay.engine.cursor import find_cursors
from runvitals.relay.engine.destination_spec import DestinationSpec
from runvitals.sdk.delivery import configured_destinations


def deliver_edits(run_id: str, directory: str) -> None:
    """Have the relay deliver the newest edits of a run to the configured servers that have it.

    A run that is still being delivered needs nothing: its relay reads edits too. What fails is printed, and
    left to `runvitals sync`.
    """
    try:
        _deliver(run_id, directory)
    except (OSError, ValueError) as error:
        notify(f"edits of {run_id} wait for `runvitals sync`: {error}")


def _deliver(run_id: str, directory: str) -> None:
    names, environ = configured_destinations([])
    specs = [DestinationSpec(name) for name in names]
    texts = {spec.text for spec in specs if spec.takes_edits}
    cursors = [
        cursor
        for cursor in find_cursors(paths.run_dir(run_id, directory), specs)
        if cursor.closed and cursor.spec.text in texts
    ]
    sock = connect_or_start(directory, environ=environ) if cursors else None
    if sock is None:
        return
    with closing(sock):
        for cursor in cursors:
            message = {"op": "deliver", "run": run_id, "destination": cursor.spec.text, "host": cursor.host}
            sock.sendall(dumps(message) + b"\n", NO_SIGNAL)
