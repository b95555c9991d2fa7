"""Which job a process belongs to, and its rank there: how N ranks on M nodes find that they are one run.

Everything is read from environment variables that launchers set, and from /proc; nothing is asked over a
network.
"""

from __future__ import annotations

import os

from runvitals.collectors.base import read_text
from runvitals.environment.job import Job, first_set, number
from runvitals.environment.scheduler import job_name, scheduled_job, scheduled_rank, slurm_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_UUID_LETTERS, _UUID_DASHES = 36, 4


def identity(environ: Mapping[str, str], pid: int | None = None, host_root: str = "") -> Job | None:
    """The job that a process is a rank of, with its name; see `_job`.

    Example:
        >>> identity({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "8"})
        Job(launcher='slurm', key='slurm-7.0', rank=3, world_size=8)
    """
    job = _job(environ, pid, host_root)
    if job is not None:
        job.name = job_name(environ) or _rendezvous_name(environ)
    return job


def _rendezvous_name(environ: Mapping[str, str]) -> str | None:
    """What was given to torchrun as `--rdzv-id`, unless it is a bare number or what torchrun makes itself."""
    name = environ.get("TORCHELASTIC_RUN_ID", "")
    is_uuid = len(name) == _UUID_LETTERS and name.count("-") == _UUID_DASHES
    return name if name not in ("", "none") and not name.isdigit() and not is_uuid else None


def _job(environ: Mapping[str, str], pid: int | None, host_root: str) -> Job | None:
    """The job that a process is a rank of, or None for a process that nobody launched as a rank.

    The rank is that of the innermost launcher (torchrun under srun: torchrun's); the key joins what the
    scheduler outside and the launcher inside say, so that two trainings one after the other in one Slurm step
    stay two runs.

    Args:
        environ: the process's environment.
        pid: the process, for launchers that say nothing but are everyone's ancestor; default: this one.
        host_root: where /proc lies.
    """
    if "RAY_JOB_ID" in environ and "TORCHELASTIC_RUN_ID" not in environ:
        return _ray(environ)
    ancestry = _Ancestry(os.getpid() if pid is None else pid, host_root)
    scheduled = scheduled_rank(environ, host_root)
    job = _torch(environ, ancestry) or _mpi(environ, ancestry)
    if job is None:
        return scheduled
    # mpirun starts the processes of its own node itself and the others through the scheduler: what the
    # scheduler says differs from node to node, what MPI says does not.
    if job.launcher in ("openmpi", "mpi") and job.key is not None:
        return job
    outer = scheduled.key if scheduled is not None else scheduled_job(environ, host_root)
    job.key = "+".join(key for key in (outer, job.key) if key) or None
    return job


def _ray(environ: Mapping[str, str]) -> Job | None:
    """A worker of Ray Train. What surrounds Ray says nothing: each of its nodes may be its own Slurm step.

    A Ray job may be a sweep of many trainings, so only the ranks' meeting point names one of them.
    """
    rank, world_size = number(environ, "RANK"), number(environ, "WORLD_SIZE")
    if rank is None or world_size is None:
        return None
    address, port = environ.get("MASTER_ADDR"), environ.get("MASTER_PORT")
    key = f"ray-{environ['RAY_JOB_ID']}-{address}:{port}" if address and port else None
    return Job("ray", key, rank, number(environ, "LOCAL_RANK"), world_size, number(environ, "NODE_RANK"))


def _torch(environ: Mapping[str, str], ancestry: _Ancestry) -> Job | None:
    """torchrun, Accelerate, DeepSpeed and whoever else sets RANK and WORLD_SIZE."""
    rank, world_size = number(environ, "RANK"), number(environ, "WORLD_SIZE")
    if rank is None or world_size is None:
        return None
    key = None
    if world_size == number(environ, "LOCAL_WORLD_SIZE", "LOCAL_SIZE"):
        # On one node everyone has the same launcher. Its process is a better name than the id, which people
        # copy from tutorials (`--rdzv-id=456`) and use for every job.
        key = ancestry.launcher("LOCAL_RANK")
    elastic = environ.get("TORCHELASTIC_RUN_ID", "")
    if key is None and elastic not in ("", "none"):
        key = f"torchrun-{elastic}"
    name = "torchrun" if "TORCHELASTIC_RUN_ID" in environ else "torch"
    node_rank = number(environ, "GROUP_RANK", "NODE_RANK", "CROSS_RANK")
    return Job(name, key, rank, number(environ, "LOCAL_RANK"), world_size, node_rank)


def _mpi(environ: Mapping[str, str], ancestry: _Ancestry) -> Job | None:
    """mpirun and mpiexec of Open MPI, MPICH, Intel MPI and Cray; what srun or flux starts is left to them."""
    job = _open_mpi(environ, ancestry) or _cray_mpi(environ)
    if job is not None or "FLUX_TASK_RANK" in environ:
        return job
    # srun sets PMI_* and PMIX_* too; mpiexec under srun does as well, but for another number of processes.
    tasks = number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    if slurm_step(environ) is not None and number(environ, "PMI_SIZE") in (None, tasks):
        return None
    return _mpich(environ, ancestry) or _pmix(environ)


def _open_mpi(environ: Mapping[str, str], ancestry: _Ancestry) -> Job | None:
    rank, world_size = number(environ, "OMPI_COMM_WORLD_RANK"), number(environ, "OMPI_COMM_WORLD_SIZE")
    if rank is None or world_size is None:
        return None
    key = None
    if world_size == number(environ, "OMPI_COMM_WORLD_LOCAL_SIZE"):
        key = ancestry.launcher("OMPI_COMM_WORLD_RANK")
    job_id = first_set(environ, "OMPI_MCA_orte_hnp_uri", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
    if key is None and job_id is not None:
        key = f"openmpi-{job_id}"
    return Job("openmpi", key, rank, number(environ, "OMPI_COMM_WORLD_LOCAL_RANK"), world_size)


def _cray_mpi(environ: Mapping[str, str]) -> Job | None:
    rank, application = number(environ, "PALS_RANKID"), environ.get("PALS_APID")
    if rank is None or not application:
        return None
    local_rank, world_size = number(environ, "PALS_LOCAL_RANKID"), number(environ, "PMI_SIZE")
    return Job("mpi", f"pals-{application}", rank, local_rank, world_size, number(environ, "PALS_NODEID"))


def _mpich(environ: Mapping[str, str], ancestry: _Ancestry) -> Job | None:
    """MPICH and Intel MPI name the job in no variable: ranks on several nodes have no key."""
    rank, world_size = number(environ, "PMI_RANK"), number(environ, "PMI_SIZE")
    if rank is None or world_size is None:
        return None
    key = ancestry.launcher("PMI_RANK") if world_size == number(environ, "MPI_LOCALNRANKS") else None
    return Job("mpi", key, rank, number(environ, "MPI_LOCALRANKID"), world_size)


def _pmix(environ: Mapping[str, str]) -> Job | None:
    """Any other launcher that speaks PMIx, such as IBM's jsrun."""
    rank, namespace = number(environ, "PMIX_RANK"), environ.get("PMIX_NAMESPACE")
    if rank is None or not namespace:
        return None
    local_rank = number(environ, "JSM_NAMESPACE_LOCAL_RANK")
    return Job("mpi", f"pmix-{namespace}", rank, local_rank, number(environ, "JSM_NAMESPACE_SIZE"))


class _Ancestry:
    """The processes above one process, as /proc tells."""

    __slots__ = ("pid", "proc")

    def __init__(self, pid: int, host_root: str) -> None:
        self.pid = pid
        self.proc = host_root + "/proc"

    def launcher(self, marker: str) -> str | None:
        """A name for the process that gave its children the variable ``marker``, unique over boots.

        It is the nearest ancestor that was not itself started with the variable: a shell that wraps the
        training script inherits it, the launcher does not. None where /proc does not tell.
        """
        wanted = b"\0" + marker.encode() + b"="
        pid = self._parent_and_start(self.pid)[0]
        while pid > 1 and wanted in b"\0" + self._environ(pid):
            pid = self._parent_and_start(pid)[0]
        start_ticks = self._parent_and_start(pid)[1]
        boot_id = read_text(f"{self.proc}/sys/kernel/random/boot_id")
        if pid < 1 or not start_ticks or boot_id is None:
            return None
        return f"launcher-{boot_id}-{pid}-{start_ticks}"

    def _parent_and_start(self, pid: int) -> tuple[int, str]:
        """A process's parent and the moment it started, in clock ticks since boot; (0, "") where unknown."""
        stat = read_text(f"{self.proc}/{pid}/stat")
        if stat is None:
            return 0, ""
        fields = stat[stat.rindex(")") + 2 :].split()  # the name before may hold spaces and parentheses
        return int(fields[1]), fields[19]

    def _environ(self, pid: int) -> bytes:
        """What a process was started with; nothing where we may not look, as for another user's."""
        text = read_text(f"{self.proc}/{pid}/environ")
        return b"" if text is None else text.encode("utf-8", "replace")
