"""Tells `wandb sync` with a recorded session from a process that resumes a run.

Both ask where the run has ended, and count their steps from there. That is right for a process. The rows of a
recorded session have their steps already. A process has asked whose key it uses just before, and `wandb sync`
has not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cachetools import LRUCache, TTLCache

from runvitals.server.access.requester import Requester

_RECENT_S: Final = 10.0
_MAX_CLIENTS: Final = 10_000


class ResumingClients:
    """The clients that have asked lately whose key they use, or were taken for `wandb sync`.

    It is in memory: a client that resumes a run while the server starts again is taken for `wandb sync` if
    the run was recorded offline, and gets an error once.

    Args:
        monotonic: seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._viewers: TTLCache[object, bool] = TTLCache(_MAX_CLIENTS, _RECENT_S, monotonic)
        self._synced: LRUCache[object, bool] = LRUCache(_MAX_CLIENTS)

    def begin_request(self, requester: Requester) -> bool:
        """Return whether the previous request of the client asked whose key it uses."""
        return self._viewers.pop(_client(requester), False)

    def note_viewer(self, requester: Requester) -> None:
        """Note that a client asks whose key it uses."""
        self._viewers[_client(requester)] = True

    def note_synced(self, requester: Requester, run_id: int) -> None:
        """Note that a client was taken for `wandb sync`."""
        self._synced[_client(requester), run_id] = True

    def was_synced(self, requester: Requester, run_id: int) -> bool:
        """Return whether a client that begins to send was taken for `wandb sync`."""
        return self._synced.pop((_client(requester), run_id), False)


def _client(requester: Requester) -> object:
    return requester.client, requester.ip
