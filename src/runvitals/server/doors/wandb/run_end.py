"""How a run of a wandb client ended."""

from __future__ import annotations

from runvitals.model.ending import Ending
from runvitals.model.state import MONITOR
from runvitals.server.metadata_store import MetadataStore

_INTERRUPTED = 255
"""The exit code that clients send when the user or the server interrupted the program."""


def ending(exit_code: int | None, stop_requested: bool) -> Ending:
    """Return the end of a run that a client reports with an exit code.

    Example:
        >>> ending(0, False).state, ending(1, False).state, ending(255, False).state
        ('finished', 'failed', 'stopped')
    """
    if exit_code in (0, None):
        return Ending("finished", exit_code, None, None)
    if stop_requested or exit_code == _INTERRUPTED:
        return Ending("stopped", exit_code, None, None)
    return Ending("failed", exit_code, None, None)


def monitors_to_end(metadata_store: MetadataStore, run_id: int, alone: bool) -> dict[str, str]:
    """The names of the writers that end with the run, and their hosts.

    Args:
        alone: the process was the only one, so that how an earlier one ended does not count any more.
            Otherwise other processes of the run may have recorded how they ended.
    """
    writers = metadata_store.writers.of_runs([run_id])[run_id]
    return {
        writer.name: writer.host
        for writer in writers
        if writer.role == MONITOR and (alone or writer.ending is None)
    }
