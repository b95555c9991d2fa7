"""Schedulers and platforms are detected by an allow-list of variables."""

from __future__ import annotations

from runvitals.monitoring.environment.platforms import platforms, visible_devices

# The environment of a task, as a cluster of gnodes set it.
SLURM = {
    "SLURM_NODELIST": "gnode[10,20,25,37]",
    "SLURM_JOB_NAME": "test-multi-nodes",
    "SLURMD_NODENAME": "gnode10",
    "SLURM_TOPOLOGY_ADDR": "gnode10",
    "SLURM_JOB_QOS": "sub",
    "SLURM_JOB_GPUS": "2",
    "SLURM_NNODES": "4",
    "SLURM_JOBID": "200505",
    "SLURM_JOB_ID": "200505",
    "SLURM_NTASKS": "4",
    "SLURM_TASK_PID": "16360",
    "SLURM_CLUSTER_NAME": "ada",
    "SLURM_JOB_PARTITION": "long",
    "SLURM_JOB_ACCOUNT": "sub",
}


def test_no_platform() -> None:
    assert platforms({"HOME": "/root", "PATH": "/usr/bin"}) == {}


def test_slurm_has_the_listed_variables() -> None:
    secrets = {
        "SLURM_JWT": "eyJ",
        "SLURM_SUBMIT_DIR": "/home/someone",
        "SLURM_CONF": "/etc/x",
        "SLURM_JOB_USER": "me",
    }
    kept = platforms(SLURM | secrets)["slurm"]
    assert kept.items() <= SLURM.items()
    assert not kept.keys() & secrets.keys()
    assert (kept["SLURM_JOB_PARTITION"], kept["SLURM_JOB_GPUS"]) == ("long", "2")


def test_nested_platforms() -> None:
    environ = SLURM | {
        "TORCHELASTIC_RUN_ID": "none",
        "WORLD_SIZE": "8",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    }
    assert set(platforms(environ)) == {"slurm", "torchrun", "kubernetes"}


def test_a_platform_without_other_variables() -> None:
    assert platforms({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}) == {"kubernetes": {}}


def test_cloud_and_notebook_platforms() -> None:
    names = platforms(
        {
            "TRAINING_JOB_NAME": "bert-1",
            "SM_CURRENT_INSTANCE_TYPE": "ml.p4d.24xlarge",
            "SM_HPS": '{"api_key": "abc"}',
            "COLAB_RELEASE_TAG": "release-colab_2026",
            "GITHUB_ACTIONS": "true",
            "GITHUB_RUN_ID": "17",
            "GITHUB_TOKEN": "ghp_abc",
        }
    )
    assert names["sagemaker"] == {
        "TRAINING_JOB_NAME": "bert-1",
        "SM_CURRENT_INSTANCE_TYPE": "ml.p4d.24xlarge",
    }
    assert names["colab"] == {"COLAB_RELEASE_TAG": "release-colab_2026"}
    assert names["github-actions"] == {"GITHUB_RUN_ID": "17"}


def test_long_values_are_truncated() -> None:
    assert len(platforms(SLURM | {"SLURM_JOB_NODELIST": "n" * 9000})["slurm"]["SLURM_JOB_NODELIST"]) == 512


def test_no_name_on_the_list_looks_like_a_secret() -> None:
    class Everything(dict[str, str]):
        """An environment in which every variable is set to its name."""

        def get(self, name: str, default: object = None) -> str:
            return name

        def __getitem__(self, name: str) -> str:
            return name

    kept = [name for names in platforms(Everything()).values() for name in names]
    assert len(kept) > 100
    assert [
        name for name in kept if any(word in name for word in ("TOKEN", "KEY", "SECRET", "PASS", "CRED"))
    ] == []


def test_an_empty_list_of_visible_devices_is_reported() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "0,2", "HOME": "/root"}
    assert visible_devices(environ) == {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "0,2"}
