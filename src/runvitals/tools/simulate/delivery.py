"""Delivers a simulated run while it is written.

A relay cannot do this: it delivers the journals of its own host only, and a simulated run has several hosts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable

from runvitals.relay.destination import Gone, Retry
from runvitals.relay.engine.backlog import cursor_for, deliver_remaining, hosts_of_run

_EVERY_S = 2.0


class Delivery:
    """Delivers in a thread, and delivers the rest when it is closed.

    Args:
        folder: the run's folder.
        destinations: the destinations in the settings.

    Attributes:
        problem: why the last attempt failed, or "".
    """

    def __init__(self, folder: str, destinations: Iterable[str]) -> None:
        self._folder = folder
        self._destinations = list(destinations)
        self._ending = threading.Event()
        self.problem = ""
        self._thread = threading.Thread(target=self._deliver, name="simulate-delivery", daemon=True)
        if self._destinations:
            self._thread.start()

    def close(self) -> None:
        """Stop the thread and deliver the rest."""
        self._ending.set()
        if self._destinations:
            self._thread.join()
            self._deliver_once()

    def _deliver(self) -> None:
        while not self._ending.wait(_EVERY_S):
            self._deliver_once()

    def _sleep(self, seconds: float) -> None:
        self._ending.wait(seconds)

    def _deliver_once(self) -> None:
        self.problem = ""
        for destination in self._destinations:
            try:
                for host in hosts_of_run(self._folder):
                    cursor = cursor_for(self._folder, destination, host, os.getcwd())
                    deliver_remaining(cursor, self._sleep)
            except (Gone, Retry, OSError, ValueError, ImportError) as error:
                self.problem = f"{destination}: {error}"
