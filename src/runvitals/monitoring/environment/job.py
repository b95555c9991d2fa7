"""The rank of a process in a distributed job."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_DIGITS = 10  # in a rank or a number of processes


class Job:
    """The rank of a process in a job.

    Args:
        launcher: what assigned the rank: ``"torchrun"``, ``"slurm"``, ``"openmpi"`` …
        key: a text that is the same in all ranks of the job, on all nodes, and differs in every other job;
            None if the launcher provides none. Ranks without a key cannot join the same run on their own.
        rank: number of this process in the job.
        local_rank: its number on its node, if known.
        world_size: number of processes in the job, if known.
        node_rank: number of its node, if known.

    Attributes:
        name: the job's name, with its number where names repeat; None if it has none. The same in all ranks.
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
        names = ("launcher", "key", "rank", "world_size")
        return f"Job({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def number(environ: Mapping[str, str], *names: str) -> int | None:
    """Return the value of the first variable that is a non-negative integer.

    >>> number({"SLURM_NTASKS": "8"}, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    8
    """
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
            return int(text)
    return None


def first_set(environ: Mapping[str, str], *names: str) -> str | None:
    """Return the value of the first variable that is set and not empty."""
    for name in names:
        if text := environ.get(name):
            return text
    return None
