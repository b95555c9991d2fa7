"""Tells `wandb sync` with a recorded session from a process that resumes a run.

Both ask where the run has ended, and count their steps from there. That is right for a process. The rows of a
recorded session have their steps already. A process has asked whose key it uses just before, and `wandb sync`
has not.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import GraphQLContext

_RECENT_S: Final = 10.0
_MAX_CLIENTS: Final = 10_000


class ResumingClients:
    """What clients have asked lately. It is in memory: a client that resumes a run while the server starts
    again is taken for `wandb sync` if the run was recorded offline, and gets an error once.

    Args:
        monotonic: seconds.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._viewers: OrderedDict[object, float] = OrderedDict()
        self._synced: OrderedDict[object, float] = OrderedDict()

    def begin_request(self, context: GraphQLContext) -> None:
        """Let the context know whether the previous request of its client asked whose key it uses."""
        asked_s = self._viewers.pop(_client(context), None)
        context.follows_viewer = asked_s is not None and self._monotonic() - asked_s < _RECENT_S

    def note_viewer(self, context: GraphQLContext) -> None:
        """Note that a client asks whose key it uses."""
        self._note(self._viewers, _client(context))

    def note_synced(self, context: GraphQLContext, run_id: int) -> None:
        """Note that a client was taken for `wandb sync`."""
        self._note(self._synced, (_client(context), run_id))

    def was_synced(self, context: GraphQLContext, run_id: int) -> bool:
        """Whether a client that begins to send was taken for `wandb sync`."""
        return self._synced.pop((_client(context), run_id), None) is not None

    def _note(self, of_clients: OrderedDict[object, float], key: object) -> None:
        of_clients[key] = self._monotonic()
        of_clients.move_to_end(key)
        if len(of_clients) > _MAX_CLIENTS:
            of_clients.popitem(last=False)


def _client(context: GraphQLContext) -> object:
    return context.requester.client, context.requester.ip
