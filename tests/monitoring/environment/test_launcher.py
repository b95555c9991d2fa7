"""Which ranks belong to the same run, and which processes stay separate runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.environment.launcher import identity

STEP = {
    "SLURM_CLUSTER_NAME": "ada",
    "SLURM_JOB_ID": "200505",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_NTASKS": "4",
}
TORCHRUN = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4", "GROUP_RANK": "1"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host whose launcher (pid 100) started two ranks (201, 202), the second through a shell (150)."""
    boot_id = tmp_path / "proc/sys/kernel/random/boot_id"
    boot_id.parent.mkdir(parents=True)
    boot_id.write_text("6ed07a9a\n")
    process(
        tmp_path,
        100,
        "torchrun (elastic)",
        parent=50,
        start=4000,
        environ={"HOME": "/root", "X_LOCAL_RANK": "1"},
    )
    process(tmp_path, 150, "bash", parent=100, start=4010, environ={"HOME": "/root", "LOCAL_RANK": "1"})
    process(tmp_path, 201, "python", parent=100, start=4011, environ={"LOCAL_RANK": "0"})
    process(tmp_path, 202, "python", parent=150, start=4012, environ={"LOCAL_RANK": "1"})
    return tmp_path


def process(root: Path, pid: int, name: str, *, parent: int, start: int, environ: dict[str, str]) -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    before = f"{pid} ({name}) S {parent} " + " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{before} {start} 0 0\n")
    (folder / "environ").write_text("".join(f"{name}={value}\0" for name, value in environ.items()))


def key(environ: dict[str, str], **where: object) -> str | None:
    job = identity(environ, **where)  # type: ignore[arg-type]
    assert job is not None
    return job.key


def test_a_plain_script_has_no_job() -> None:
    assert identity({"HOME": "/root", "PATH": "/usr/bin"}) is None


# ---------------------------------------------------------------- Slurm


def test_slurm_step_has_key_and_ranks() -> None:
    job = identity(STEP)
    assert job is not None
    assert (job.launcher, job.key) == ("slurm", "slurm-ada-200505.0")
    assert (job.rank, job.local_rank, job.world_size, job.node_rank) == (3, 1, 4, 1)


def test_slurm_world_size_is_that_of_the_step() -> None:
    job = identity(STEP | {"SLURM_STEP_NUM_TASKS": "2"})
    assert job is not None
    assert job.world_size == 2


def test_slurm_array_tasks_are_different_jobs() -> None:
    first = key(STEP | {"SLURM_ARRAY_JOB_ID": "200500", "SLURM_ARRAY_TASK_ID": "5"})
    second = key(STEP | {"SLURM_ARRAY_JOB_ID": "200500", "SLURM_ARRAY_TASK_ID": "6"})
    assert (first, second) == ("slurm-ada-200500_5.0", "slurm-ada-200500_6.0")


@pytest.mark.parametrize(
    "shell",
    [
        pytest.param({"SLURM_STEP_ID": None}, id="salloc or sbatch without a step"),
        pytest.param({"SLURM_STEP_ID": "batch"}, id="batch step, by name"),
        pytest.param({"SLURM_STEP_ID": "4294967291"}, id="batch step"),
        pytest.param({"SLURM_STEP_ID": "4294967290"}, id="interactive step"),
        pytest.param({"SLURM_PTY_PORT": "37107", "SLURM_PTY_WIN_COL": "120"}, id="srun --pty bash"),
        pytest.param({"SLURM_PROCID": None}, id="no task"),
        pytest.param({"SLURM_JOB_ID": None}, id="no job"),
    ],
)
def test_scripts_in_an_interactive_slurm_shell_are_not_ranks(shell: dict[str, str | None]) -> None:
    changed = STEP | shell
    assert identity({name: value for name, value in changed.items() if value is not None}) is None


# ---------------------------------------------------------------- torchrun and others that set RANK


def test_torchrun_on_several_nodes_is_identified_by_its_id() -> None:
    job = identity(TORCHRUN | {"TORCHELASTIC_RUN_ID": "exp-17"})
    assert job is not None
    assert (job.launcher, job.key) == ("torchrun", "torchrun-exp-17")
    assert (job.rank, job.local_rank, job.world_size, job.node_rank) == (5, 1, 8, 1)


@pytest.mark.parametrize("run_id", ["none", ""])
def test_torchrun_on_several_nodes_without_an_id_has_ranks_but_no_key(run_id: str) -> None:
    job = identity(TORCHRUN | {"TORCHELASTIC_RUN_ID": run_id})
    assert job is not None
    assert (job.key, job.rank) == (None, 5)


def test_torchrun_on_one_node_is_identified_by_its_process(root: Path) -> None:
    environ = TORCHRUN | {"LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "none"}
    keys = {key(environ, pid=pid, host_root=str(root)) for pid in (201, 202)}
    assert keys == {"launcher-6ed07a9a-100-4000"}


def test_ranks_that_lightning_starts_are_identified_by_the_script(root: Path) -> None:
    environ = {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    ranks = ((100, environ | {"LOCAL_RANK": "0"}), (201, environ))
    jobs = [identity(own, pid=pid, host_root=str(root)) for pid, own in ranks]
    assert [job and (job.launcher, job.key, job.rank, job.world_size) for job in jobs] == [
        ("lightning", "launcher-6ed07a9a-100-4000", 0, 2), ("lightning", "launcher-6ed07a9a-100-4000", 1, 2),
    ]  # fmt: skip
    assert identity(environ | {"MASTER_ADDR": "10.0.0.1"}, pid=201, host_root=str(root)) is None


def test_equal_torchrun_ids_do_not_merge_two_trainings(root: Path) -> None:
    environ = TORCHRUN | {"LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "456"}
    process(root, 300, "torchrun", parent=50, start=9000, environ={})
    process(root, 301, "python", parent=300, start=9001, environ={"LOCAL_RANK": "0"})
    first, second = (key(environ, pid=pid, host_root=str(root)) for pid in (201, 301))
    assert first != second


def test_torchrun_on_one_node_is_identified_by_its_id_without_proc(tmp_path: Path) -> None:
    environ = TORCHRUN | {"LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "exp-17"}
    assert key(environ, pid=201, host_root=str(tmp_path)) == "torchrun-exp-17"


def test_torchrun_under_srun_has_its_rank_and_the_steps_key() -> None:
    job = identity(STEP | TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"})
    assert job is not None
    assert (job.launcher, job.key, job.rank, job.world_size) == ("torchrun", "slurm-ada-200505.0", 5, 8)


def test_two_trainings_in_one_slurm_step_are_two_runs(root: Path) -> None:
    environ = STEP | TORCHRUN | {"LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "none"}
    process(root, 300, "torchrun", parent=50, start=9000, environ={})
    process(root, 301, "python", parent=300, start=9001, environ={"LOCAL_RANK": "0"})
    first, second = (key(environ, pid=pid, host_root=str(root)) for pid in (201, 301))
    assert first == "slurm-ada-200505.0+launcher-6ed07a9a-100-4000"
    assert first != second


def test_a_script_that_renames_slurms_ranks_keeps_the_steps_key() -> None:
    job = identity(STEP | {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "gnode10"})
    assert job is not None
    assert (job.key, job.rank) == ("slurm-ada-200505.0", 3)


def test_incomplete_or_invalid_ranks_are_ignored() -> None:
    assert identity({"RANK": "0"}) is None
    assert identity({"RANK": "zero", "WORLD_SIZE": "2"}) is None
    assert identity({"RANK": "-1", "WORLD_SIZE": "2"}) is None


def test_real_processes_of_one_launcher_share_a_key_and_other_launchers_do_not() -> None:
    """Without fakes: two children of this process, and two of another one, determine their key."""
    ask = (
        "import os; from runvitals.monitoring.environment.launcher import identity; "
        "print(identity(os.environ).key)"
    )
    start = (
        "import os, subprocess, sys\n"
        "for rank in '01':\n"
        "    ranks = {'RANK': rank, 'LOCAL_RANK': rank, 'WORLD_SIZE': '2', 'LOCAL_WORLD_SIZE': '2'}\n"
        f"    subprocess.run([sys.executable, '-c', {ask!r}], env=os.environ | ranks, check=True)\n"
    )
    environ = {name: value for name, value in os.environ.items() if name not in TORCHRUN}
    environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    outputs = [
        subprocess.run([sys.executable, "-c", start], env=environ, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    first, second = (output.stdout.split() for output in outputs)
    assert first[0] == first[1]
    assert second[0] == second[1]
    assert first[0] != second[0]
    assert first[0].startswith("launcher-")


# ---------------------------------------------------------------- Ray


def test_ray_train_workers_share_the_address_of_their_master() -> None:
    worker = {
        "RAY_JOB_ID": "01000000",
        "MASTER_ADDR": "10.0.0.4",
        "MASTER_PORT": "41233",
        "RANK": "1",
        "WORLD_SIZE": "2",
    }
    job = identity(STEP | worker | {"LOCAL_RANK": "0", "NODE_RANK": "1"})
    assert job is not None
    assert (job.launcher, job.key, job.rank) == ("ray", "ray-01000000-10.0.0.4:41233", 1)


def test_trials_of_a_ray_sweep_are_not_merged() -> None:
    assert identity(STEP | {"RAY_JOB_ID": "01000000"}) is None


# ---------------------------------------------------------------- MPI

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "OMPI_MCA_ess_base_jobid": "3846373377",
}


def test_open_mpi_job_id_is_the_same_on_all_nodes() -> None:
    at_mpirun = {name: value for name, value in STEP.items() if name != "SLURM_STEP_ID"} | OPEN_MPI
    elsewhere = STEP | OPEN_MPI
    assert key(at_mpirun) == key(elsewhere) == "openmpi-3846373377"


def test_open_mpi_5_has_a_namespace() -> None:
    assert key(OPEN_MPI | {"PMIX_NAMESPACE": "prterun-n1-77@1"}) == "openmpi-prterun-n1-77@1"


def test_open_mpi_on_one_node_is_identified_by_its_process(root: Path) -> None:
    environ = OPEN_MPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}
    assert key(environ, pid=201, host_root=str(root)) == "launcher-6ed07a9a-100-4000"


def test_srun_with_pmi_has_the_key_of_slurm() -> None:
    job = identity(
        STEP | {"PMI_RANK": "3", "PMI_SIZE": "4", "PMIX_RANK": "3", "PMIX_NAMESPACE": "slurm.pmix.200505.0"}
    )
    assert job is not None
    assert (job.launcher, job.rank) == ("slurm", 3)


def test_mpiexec_under_srun_has_its_ranks_and_the_steps_key() -> None:
    job = identity(STEP | {"SLURM_NTASKS": "2", "SLURM_PROCID": "1", "PMI_RANK": "6", "PMI_SIZE": "8"})
    assert job is not None
    assert (job.launcher, job.rank, job.world_size, job.key) == ("mpi", 6, 8, "slurm-ada-200505.0")


def test_cray_and_jsrun_applications() -> None:
    cray = {
        "PALS_RANKID": "9",
        "PALS_APID": "6a0d",
        "PALS_LOCAL_RANKID": "1",
        "PMI_SIZE": "16",
        "PALS_NODEID": "2",
    }
    assert key(cray) == "pals-6a0d"
    assert key({"PMIX_RANK": "4", "PMIX_NAMESPACE": "1.77", "JSM_NAMESPACE_SIZE": "12"}) == "pmix-1.77"


# ---------------------------------------------------------------- other schedulers


def test_flux_task() -> None:
    environ = {
        "FLUX_TASK_RANK": "1",
        "FLUX_JOB_ID": "f2Tx",
        "FLUX_JOB_SIZE": "2",
        "PMI_RANK": "1",
        "PMI_SIZE": "2",
    }
    job = identity(environ)
    assert job is not None
    assert (job.launcher, job.key, job.rank, job.world_size) == ("flux", "flux-f2Tx", 1, 2)


def test_sagemaker_hosts_are_ranks_without_torchrun() -> None:
    host = {
        "TRAINING_JOB_NAME": "bert-2026-11-21",
        "SM_HOSTS": '["algo-1", "algo-2"]',
        "SM_CURRENT_HOST": "algo-2",
    }
    job = identity(host)
    assert job is not None
    assert (job.launcher, job.key, job.rank, job.world_size) == (
        "sagemaker",
        "sagemaker-bert-2026-11-21",
        1,
        2,
    )
    finer = identity(host | TORCHRUN | {"TORCHELASTIC_RUN_ID": "none"})
    assert finer is not None
    assert (finer.launcher, finer.key, finer.rank) == ("torchrun", "sagemaker-bert-2026-11-21", 5)


def test_a_single_sagemaker_host_has_no_rank() -> None:
    assert identity({"TRAINING_JOB_NAME": "a", "SM_HOSTS": '["algo-1"]', "SM_CURRENT_HOST": "algo-1"}) is None


def test_aws_batch_nodes_share_the_part_of_the_id_before_the_hash() -> None:
    environ = {"AWS_BATCH_JOB_ID": "06f4#1", "AWS_BATCH_JOB_NODE_INDEX": "1", "AWS_BATCH_JOB_NUM_NODES": "4"}
    job = identity(environ)
    assert job is not None
    assert (job.key, job.rank, job.world_size) == ("aws-batch-06f4", 1, 4)


@pytest.mark.parametrize("host", ["train-bert-3", "train-bert-3-x7k2p"])
def test_indexed_kubernetes_job_by_host_name(host: str, tmp_path: Path) -> None:
    namespace = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount/namespace"
    namespace.parent.mkdir(parents=True)
    namespace.write_text("research")
    job = identity({"JOB_COMPLETION_INDEX": "3", "HOSTNAME": host}, host_root=str(tmp_path))
    assert job is not None
    assert (job.key, job.rank) == ("kubernetes-research-train-bert", 3)


@pytest.mark.parametrize("host", ["bert", "3", "bert-4", ""])
def test_a_host_name_without_the_index_is_not_a_kubernetes_job(host: str, tmp_path: Path) -> None:
    assert identity({"JOB_COMPLETION_INDEX": "3", "HOSTNAME": host}, host_root=str(tmp_path)) is None


def test_replicas_of_a_training_operator_share_the_name_of_the_master(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.1.0.1", "WORLD_SIZE": "2", "MASTER_PORT": "23456"}
    master = pod | {"RANK": "0", "MASTER_ADDR": "localhost", "HOSTNAME": "bert-7-master-0"}
    worker = pod | {"RANK": "1", "MASTER_ADDR": "bert-7-master-0.team.svc", "HOSTNAME": "bert-7-worker-0"}
    keys = {key(environ, host_root=str(tmp_path)) for environ in (master, worker)}
    assert keys == {"kubernetes-default-bert-7-master-0"}


def test_platform_run_ids_with_ranks_of_another_launcher() -> None:
    ranks = {"RANK": "1", "WORLD_SIZE": "2"}
    assert key(ranks | {"AZUREML_RUN_ID": "brave_sun_1"}) == "azureml-brave_sun_1"
    assert key(ranks | {"CLOUD_ML_JOB_ID": "4711"}) == "vertex-4711"
    assert identity({"AZUREML_RUN_ID": "brave_sun_1"}) is None


@pytest.mark.parametrize("text", ["9" * 5000, "9" * 30, "-1", "1.5", "nan", "²"])
def test_invalid_ranks(text: str) -> None:
    job = identity({**TORCHRUN, "RANK": text, "WORLD_SIZE": text})
    assert job is None or (job.rank is None and job.world_size is None)
