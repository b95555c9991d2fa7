"""Job and rank as assigned by schedulers and platforms that start one process per task or node."""

from __future__ import annotations

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.environment.job import Job, first_set, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Slurm numbers the steps that srun starts from 0. The batch script, an interactive shell and the like have
# ids at the end of the 32-bit range. What users run there is not a rank of a job.
_SLURM_FIRST_SPECIAL_STEP = 0xFFFFFFF0

_KUBERNETES_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


def scheduled_rank(environ: Mapping[str, str], host_root: str) -> Job | None:
    """Return the rank assigned by a scheduler, if it starts the ranks or one process per node."""
    return (
        _slurm(environ)
        or _flux(environ)
        or _sagemaker(environ)
        or _aws_batch(environ)
        or _kubernetes_index(environ, host_root)
    )


def scheduled_job(environ: Mapping[str, str], host_root: str) -> str | None:
    """Return the key of a job whose scheduler assigns no ranks."""
    for name, variable in (
        ("sagemaker", "TRAINING_JOB_NAME"),
        ("azureml", "AZUREML_RUN_ID"),
        ("vertex", "CLOUD_ML_JOB_ID"),
    ):
        if job := environ.get(variable):
            return f"{name}-{job}"
    return _kubernetes_master(environ, host_root)


def job_name(environ: Mapping[str, str]) -> str | None:
    """Return the name of the job, the same in all its ranks; with the job's number where names repeat."""
    if slurm_step(environ) is not None:
        return _with_number(environ.get("SLURM_JOB_NAME"), _slurm_job(environ))
    for name, number_of_job in (("PBS_JOBNAME", "PBS_JOBID"), ("LSB_JOBNAME", "LSB_JOBID")):
        if environ.get(name):
            return _with_number(environ[name], environ.get(number_of_job, "").partition(".")[0])
    return first_set(environ, "TRAINING_JOB_NAME", "AZUREML_RUN_ID", "CLOUD_ML_JOB_ID") or _kubernetes_name(
        environ
    )


def _with_number(name: str | None, job: str | None) -> str | None:
    return f"{name}-{job}" if name and job else name or None


def _kubernetes_name(environ: Mapping[str, str]) -> str | None:
    if "KUBERNETES_SERVICE_HOST" not in environ:
        return None
    if "JOB_COMPLETION_INDEX" in environ:
        return _indexed_name(environ)
    name, _, role = environ.get("MASTER_ADDR", "").partition(".")[0].rpartition("-master-")
    return name if role == "0" else None


def slurm_step(environ: Mapping[str, str]) -> int | None:
    """Return the step that srun started the process in.

    None in a batch script, a shell, or outside of Slurm.
    """
    step = number(environ, "SLURM_STEP_ID", "SLURM_STEPID")
    if step is None or step >= _SLURM_FIRST_SPECIAL_STEP or "SLURM_PROCID" not in environ:
        return None
    if "SLURM_PTY_PORT" in environ or "SLURM_PTY_WIN_COL" in environ:
        return None  # `srun --pty bash`: a numbered step, but interactive
    return step


def _slurm(environ: Mapping[str, str]) -> Job | None:
    step, rank = slurm_step(environ), number(environ, "SLURM_PROCID")
    job = _slurm_job(environ)
    if step is None or rank is None or job is None:
        return None
    return Job(
        "slurm",
        "-".join(part for part in ("slurm", environ.get("SLURM_CLUSTER_NAME"), f"{job}.{step}") if part),
        rank,
        number(environ, "SLURM_LOCALID"),
        number(environ, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
        number(environ, "SLURM_NODEID"),
    )


def _slurm_job(environ: Mapping[str, str]) -> str | None:
    if "SLURM_ARRAY_JOB_ID" in environ and "SLURM_ARRAY_TASK_ID" in environ:
        return f"{environ['SLURM_ARRAY_JOB_ID']}_{environ['SLURM_ARRAY_TASK_ID']}"
    return first_set(environ, "SLURM_JOB_ID", "SLURM_JOBID")


def _flux(environ: Mapping[str, str]) -> Job | None:
    rank, job = number(environ, "FLUX_TASK_RANK"), environ.get("FLUX_JOB_ID")
    if rank is None or not job:
        return None
    local_rank = number(environ, "FLUX_TASK_LOCAL_ID")
    return Job("flux", f"flux-{job}", rank, local_rank, number(environ, "FLUX_JOB_SIZE"))


def _sagemaker(environ: Mapping[str, str]) -> Job | None:
    """SageMaker starts one process per host. SM_HOSTS is a JSON list of host names without escapes."""
    job, own_host = environ.get("TRAINING_JOB_NAME"), environ.get("SM_CURRENT_HOST", "")
    hosts = [host.strip(' "') for host in environ.get("SM_HOSTS", "").strip("[] ").split(",")]
    if not job or own_host not in hosts or len(hosts) == 1:
        return None
    node = hosts.index(own_host)
    return Job("sagemaker", f"sagemaker-{job}", node, 0, len(hosts), node)


def _aws_batch(environ: Mapping[str, str]) -> Job | None:
    """A multi-node parallel job: the job id of a node is that of the job, "#", and the node's number."""
    nodes, node = number(environ, "AWS_BATCH_JOB_NUM_NODES"), number(environ, "AWS_BATCH_JOB_NODE_INDEX")
    job = environ.get("AWS_BATCH_JOB_ID", "").partition("#")[0]
    if nodes is None or node is None or not job:
        return None
    return Job("aws-batch", f"aws-batch-{job}", node, 0, nodes, node)


def _kubernetes_index(environ: Mapping[str, str], host_root: str) -> Job | None:
    """Return a pod of an indexed Job, whose host name consists of the Job's name and the pod's index."""
    index, name = number(environ, "JOB_COMPLETION_INDEX"), _indexed_name(environ)
    if index is None or name is None:
        return None
    return Job("kubernetes", f"kubernetes-{_namespace(environ, host_root)}-{name}", index, 0, None, index)


def _indexed_name(environ: Mapping[str, str]) -> str | None:
    index = str(number(environ, "JOB_COMPLETION_INDEX"))
    name, _, tail = environ.get("HOSTNAME", "").rpartition("-")
    if tail != index:  # the pod's name has five random characters behind the index
        name, _, tail = name.rpartition("-")
    return name if name and tail == index else None


def _kubernetes_master(environ: Mapping[str, str], host_root: str) -> str | None:
    """Training operators name the rendezvous service after the job: `bert-7-master-0`.

    The value that torchrun's rendezvous sets changes when it restarts the ranks, so it is not used.
    """
    master, rendezvous = environ.get("MASTER_ADDR"), environ.get("TORCHELASTIC_RUN_ID", "none")
    if "KUBERNETES_SERVICE_HOST" not in environ or not master or rendezvous not in ("", "none"):
        return None
    if master in ("localhost", "127.0.0.1", "::1"):
        master = environ.get("HOSTNAME", master)  # on the master pod
    if not master.replace(".", "").isdigit():
        master = master.partition(".")[0]
    return f"kubernetes-{_namespace(environ, host_root)}-{master}"


def _namespace(environ: Mapping[str, str], host_root: str) -> str:
    return read_text(host_root + _KUBERNETES_NAMESPACE) or environ.get("POD_NAMESPACE") or "default"
