"""One process's place in a job of many."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_DIGITS = 10  # of a rank or a number of processes


class Job:
    """One process's place in a job.

    Args:
        launcher: who gave the rank, for people: ``"torchrun"``, ``"slurm"``, ``"openmpi"`` …
        key: the same text in every rank of the job, on every node, and in no other job; None where nothing
            that the launcher says is both. Ranks without a key cannot find each other by themselves.
        rank: number of this process in the job.
        local_rank: its number on its node, if known.
        world_size: processes of the job, if known.
        node_rank: number of its node, if known.

    Attributes:
        name: what people call the job, with its number where names repeat; None where it has no name. The
            same in every rank.
    """

    __slots__ = ("key", "launcher", "local_rank", "name", "node_rank", "rank", "world_size")

    def __init__(
        self,
        launcher: str,
        key: str | None,
        rank: int,
        local_rank: int | None = None,
        world_size: int | None = None,
        node_rank: int | None = None,
    ) -> None:
        self.launcher = launcher
        self.key = key
        self.rank = rank
        self.local_rank = local_rank
        self.world_size = world_size
        self.node_rank = node_rank
        self.name: str | None = None

    def __repr__(self) -> str:
        shown = ("launcher", "key", "rank", "world_size")
        return f"Job({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def number(environ: Mapping[str, str], *names: str) -> int | None:
    """The first of some variables that holds a whole number.

    >>> number({"SLURM_NTASKS": "8"}, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    8
    """
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
            return int(text)
    return None


def first_set(environ: Mapping[str, str], *names: str) -> str | None:
    """The first of some variables that is set and not empty."""
    for name in names:
        if text := environ.get(name):
            return text
    return None
