"""Relays of other interpreters.

A data folder has one relay; where that lacks a package for a destination, a relay of the interpreter of the
training delivers, which may have it.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from runvitals.base.backoff import Backoff
from runvitals.journal import paths
from runvitals.monitoring.monitor import relay_connection
from runvitals.relay.client_connection import RelayClient
from runvitals.relay.engine.cursor import Cursor

_MAX_WAIT_S = 60.0
_ASK_AGAIN_S = 0.1


class Handover(NamedTuple):
    """A delivery that another interpreter is to continue.

    Args:
        destination: the whole text.
        python: the interpreter of the training.
        request: what the run's monitor has asked for; None for a run that an earlier relay has left behind.
    """

    run_id: str
    destination: str
    python: str
    request: Mapping[str, Any] | None

    @classmethod
    def of(cls, cursor: Cursor, request: Mapping[str, Any] | None) -> Handover | None:
        """Return the handover of a delivery.

        None if its training had this interpreter, or one that is not there.

        The interpreter of a file is only trusted if no other user, and no repository, can have written it.
        """
        python = str(request.get("python", "")) if request is not None else _recorded_python(cursor)
        if not os.path.isabs(python) or python == sys.executable or not os.access(python, os.X_OK):
            return None
        return cls(os.path.basename(cursor.folder), cursor.spec.text, python, request)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of that relay: ours, with the module folders of the training."""
        if self.request is None:
            return dict(os.environ)
        ours = {name: text for name, text in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
        modules = str(self.request.get("pythonpath") or "")
        return {**ours, "PYTHONPATH": modules} if modules else ours


class OtherRelays:
    """The connections to relays of other interpreters, one for each delivery of a running run.

    Args:
        directory: the data folder.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._connections: dict[int, tuple[Handover, RelayClient]] = {}  # by descriptor
        self._backoffs: dict[str, Backoff] = {}  # by interpreter

    def take(self, handover: Handover, is_running: bool) -> int | None:
        """Let the relay of its interpreter deliver a run, and start that relay if there is none.

        Returns:
            For a running run the descriptor on which that relay sends messages for the monitor, else -1; None
            if that relay cannot be reached now.
        """
        backoff = self._backoffs.setdefault(handover.python, Backoff(1.0, _MAX_WAIT_S))
        if not backoff.due(time.monotonic()):
            return None
        connected = relay_connection.connect_or_start(self._directory, handover.python, handover.environ)
        if connected is None:
            backoff.note_failure(time.monotonic())
            return None
        sock = socket.socket(fileno=connected.detach())
        client = RelayClient(sock)
        client.send(_message(handover))
        if not is_running:
            sock.close()
            return -1
        sock.setblocking(False)
        self._connections[sock.fileno()] = handover, client
        return sock.fileno()

    def messages(self, fd: int) -> list[dict[str, Any]] | None:
        """Return what a relay has sent for the monitor of a run; None if it has gone."""
        handover, client = self._connections[fd]
        messages = client.messages()
        if messages is None:
            self._backoffs[handover.python].note_failure(time.monotonic())
        elif messages:
            self._backoffs[handover.python].note_success()
        return messages

    def handover(self, fd: int) -> Handover | None:
        """Return the delivery that was handed over on a connection; None if it is none of ours."""
        return self._connections[fd][0] if fd in self._connections else None

    def of_run(self, run_id: str) -> list[int]:
        """Return the descriptors of a run's connections."""
        return [fd for fd, (handover, _) in self._connections.items() if handover.run_id == run_id]

    def close(self, fd: int) -> None:
        """Close a connection, which tells that relay that the run has ended."""
        _, client = self._connections.pop(fd)
        client.sock.close()

    def flush(self, handover: Handover, until_s: float) -> dict[str, object] | None:
        """Return what that relay has delivered of a run when it is done, or when the time is up.

        None without a response: it may still be starting.
        """
        while True:
            left_s = max(until_s - time.monotonic(), 0.0)
            message = {"op": "flush", "run": handover.run_id, "timeout_s": left_s}
            response = relay_connection.ask(self._directory, message, left_s + 1.0, handover.python)
            reports = [] if response is None else response["destinations"]
            own_reports = [report for report in reports if report["destination"] == handover.destination]
            is_served = any(report["delivered"] or report["error"] for report in own_reports)
            if is_served or not left_s:  # else it waits for the lock that this relay has just given up
                return own_reports[0] if own_reports else None
            time.sleep(_ASK_AGAIN_S)


def _message(handover: Handover) -> dict[str, object]:
    if handover.request is None:
        return {"op": "deliver", "run": handover.run_id, "destination": handover.destination}
    return {**handover.request, "destinations": [handover.destination]}


def _recorded_python(cursor: Cursor) -> str:
    folder = os.path.dirname(os.path.dirname(cursor.folder))
    try:
        is_ours = os.stat(cursor.path).st_uid == os.getuid()
    except OSError:
        return ""
    return cursor.python if is_ours and os.path.basename(folder) != paths.FOLDER_HERE else ""
