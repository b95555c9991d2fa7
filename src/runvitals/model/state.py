"""The state of a run, and the rule that determines it.

Readers of journals, the metadata store and the monitor all use these functions.

A run is in one of these states:

    running   a host is running
    finished  the program ended with exit code 0
    failed    it ended with another exit code
    crashed   a signal ended it, or it ended without announcing it
    stopped   HUP, INT or TERM ended it, or a user requested the stop
    lost      no end was recorded, and the writer has been silent for longer than `silence_ms`

The rule, from the processes up to the run:

1. **Process.** Its exit code or signal gives its state (`runvitals.model.ending.ProcessExit.state`).
2. **Monitor.** When all processes of its host are over, the monitor records the worst of their states in an
   `end` record. A worker, which another process of the run started, counts only if one of the others failed
   or crashed. If a stop was requested, every state but `crashed` becomes `stopped` (`host_ending`).
3. **Writers.** Only monitors determine a run's state. Where no monitor could be started, the training
   processes do; where there are none either, every writer does, such as a client of the API
   (`deciding_writers`).
4. **Host.** Its newest writer decides: the state in its `end` record, else running or lost. Of training
   processes the newest one with an `end` record decides: forked processes write too, but record no end.
5. **Run.** It is running while any host is. After that it has the worst state of its hosts: crashed, failed,
   lost, stopped, finished, in this order (`worst`).

How silence is measured is the one difference between readers. A reader of journals compares a writer's newest
record with the time on the writer's clock. The metadata store uses the server's clock and the time at which
the server last heard from the writer.

The monitor imports this module: it loads nothing of the standard library.
"""

from __future__ import annotations

from runvitals.model.ending import Ending

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Final, Protocol, TypeGuard, TypeVar

    from runvitals.model.ending import ProcessExit
    from runvitals.model.run_state import State

    class StateWriter(Protocol):
        """A writer as far as the rule needs it; `ending` is None until it has recorded its end."""

        @property
        def role(self) -> str:
            """Its kind: a monitor, a training process or a client."""

        @property
        def host(self) -> str:
            """The name of its host."""

        @property
        def ending(self) -> Ending | None:
            """Its `end` record; None if there is none."""

    Writer = TypeVar("Writer", bound=StateWriter)

MONITOR = "monitor"
TRAIN = "train"
EDIT = "edit"
"""What users changed afterwards: no process of the run, and no sign of life."""
RUNNING: Final = "running"
LOST: Final = "lost"
WORST_FIRST = ("crashed", "failed", LOST, "stopped", "finished")
STATES = (RUNNING, *WORST_FIRST)
ENDED_STATES = ("finished", "failed", "crashed", "stopped")
"""The states that an `end` record may have."""
SILENT_INTERVALS = 5
SILENT_MS = 10_000


def is_ended(state: object) -> TypeGuard[State]:
    """Return whether an `end` record may have this state."""
    return state in ENDED_STATES


def silence_ms(interval_s: float | None) -> int:
    """Return how long a monitor that samples every `interval_s` seconds may be silent and count as running.

    Example:
        >>> silence_ms(1.0), silence_ms(15.0)
        (10000, 75000)
    """
    return max(int(SILENT_INTERVALS * 1000 * (interval_s or 1.0)), SILENT_MS)


def worst(endings: Iterable[Ending]) -> Ending:
    """Return the ending of a whole run from those of its hosts.

    The first one of several that are equally bad.

    Example:
        >>> worst([Ending("finished", 0), Ending("failed", 3), Ending("lost")])
        Ending('failed', exit_code=3, signal=None, out_of_memory=None)
    """
    return min(endings, key=lambda ending: STATES.index(ending.state), default=Ending(LOST))


def host_ending(
    exits: Iterable[ProcessExit], stop_requested: bool = False, workers: Iterable[ProcessExit] = ()
) -> Ending:
    """Return the ending of a host whose processes are all over, as its monitor records it.

    Args:
        exits: how its processes ended. Without any, the host has finished.
        stop_requested: whether a user requested the stop.
        workers: how the processes ended that others of the run had started. A training that ends well may end
            them by a signal; if it does not end well, they may say why.
    """
    endings = [exit.ending() for exit in exits]
    ending = worst(endings) if endings else Ending("finished", 0, None, False)
    if ending.state in ("crashed", "failed"):
        ending = worst([ending, *(exit.ending() for exit in workers)])
    if stop_requested and ending.state != "crashed":
        return Ending("stopped", ending.exit_code, ending.signal, ending.out_of_memory)
    return ending


def deciding_writers(writers: Iterable[Writer]) -> dict[str, list[Writer]]:
    """By host, the writers whose role determines the state of a run, in the order given."""
    writers = list(writers)
    roles = {writer.role for writer in writers}
    deciding = next((role for role in (MONITOR, TRAIN) if role in roles), None)
    by_host: dict[str, list[Writer]] = {}
    for writer in writers:
        if deciding in (None, writer.role):
            by_host.setdefault(writer.host, []).append(writer)
    return by_host


def deciding_writer(writers: Sequence[Writer]) -> Writer:
    """Return the writer that determines the state of a host, from its `deciding_writers`."""
    ended = [writer for writer in writers if writer.role == TRAIN and writer.ending is not None]
    return (ended or writers)[-1]
