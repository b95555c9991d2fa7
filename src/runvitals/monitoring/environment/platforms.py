"""The scheduler, launcher and platform of the run, as facts from their environment variables.

Only variables on an allow-list are read: a copy of all SLURM_* variables, say, would record secrets, and the
paths and names of other users.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Platform; variables of which at least one is set there; variables to keep.
_PLATFORMS: tuple[tuple[str, str, str], ...] = (
    (
        "slurm",
        "SLURM_JOB_ID SLURM_JOBID",
        "SLURM_JOB_ID SLURM_JOB_NAME SLURM_JOB_PARTITION SLURM_JOB_QOS SLURM_JOB_ACCOUNT SLURM_CLUSTER_NAME "
        "SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_ID SLURM_STEP_ID SLURM_JOB_NODELIST SLURMD_NODENAME "
        "SLURM_NODEID SLURM_NNODES SLURM_NTASKS SLURM_CPUS_PER_TASK SLURM_MEM_PER_NODE SLURM_MEM_PER_CPU "
        "SLURM_GPUS_ON_NODE SLURM_JOB_GPUS SLURM_STEP_GPUS SLURM_RESTART_COUNT SLURM_JOB_END_TIME",
    ),
    (
        "torchrun",
        "TORCHELASTIC_RUN_ID",
        "TORCHELASTIC_RUN_ID TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS GROUP_RANK "
        "GROUP_WORLD_SIZE LOCAL_WORLD_SIZE WORLD_SIZE MASTER_ADDR",
    ),
    ("ray", "RAY_JOB_ID RAY_ADDRESS RAY_CLUSTER_NAME", "RAY_JOB_ID RAY_CLUSTER_NAME"),
    ("openmpi", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("mpi", "PMI_SIZE PMIX_NAMESPACE PALS_APID", "PMI_SIZE PMIX_NAMESPACE PALS_APID"),
    ("pbs", "PBS_JOBID", "PBS_JOBID PBS_JOBNAME PBS_QUEUE PBS_ARRAY_INDEX"),
    ("lsf", "LSB_JOBID", "LSB_JOBID LSB_JOBNAME LSB_QUEUE LSB_JOBINDEX LSB_DJOB_NUMPROC"),
    ("sge", "SGE_TASK_ID", "JOB_ID JOB_NAME QUEUE SGE_TASK_ID NSLOTS NHOSTS"),
    ("flux", "FLUX_JOB_ID", "FLUX_JOB_ID FLUX_JOB_SIZE FLUX_JOB_NNODES"),
    ("cobalt", "COBALT_JOBID", "COBALT_JOBID COBALT_JOBSIZE"),
    ("htcondor", "_CONDOR_JOB_AD", "_CONDOR_SLOT"),
    (
        "kubernetes",
        "KUBERNETES_SERVICE_HOST",
        "POD_NAME POD_NAMESPACE NODE_NAME MY_POD_NAME MY_POD_NAMESPACE MY_NODE_NAME JOB_COMPLETION_INDEX",
    ),
    ("kubeflow", "PET_NNODES TF_CONFIG", "PET_NNODES PET_NPROC_PER_NODE PET_RDZV_ID PET_MAX_RESTARTS"),
    ("volcano", "VC_TASK_INDEX VK_TASK_INDEX", "VC_TASK_INDEX VK_TASK_INDEX"),
    ("dask", "DASK_PARENT", "DASK_PARENT"),
    ("spark", "SPARK_ENV_LOADED", "SPARK_ENV_LOADED"),
    (
        "sagemaker",
        "TRAINING_JOB_NAME SM_CURRENT_HOST",
        "TRAINING_JOB_NAME SM_CURRENT_HOST SM_CURRENT_INSTANCE_TYPE SM_HOSTS SM_NUM_GPUS SM_NUM_NEURONS",
    ),
    (
        "aws-batch",
        "AWS_BATCH_JOB_ID",
        "AWS_BATCH_JOB_ID AWS_BATCH_JOB_ATTEMPT AWS_BATCH_JQ_NAME AWS_BATCH_JOB_ARRAY_INDEX "
        "AWS_BATCH_JOB_NODE_INDEX AWS_BATCH_JOB_NUM_NODES",
    ),
    ("ecs", "ECS_CONTAINER_METADATA_URI_V4", "AWS_EXECUTION_ENV AWS_REGION"),
    (
        "azureml",
        "AZUREML_RUN_ID",
        "AZUREML_RUN_ID AZUREML_ARM_WORKSPACE_NAME AZUREML_ARM_RESOURCEGROUP AZUREML_ARM_PROJECT_NAME",
    ),
    ("vertex", "CLOUD_ML_JOB_ID AIP_TRAINING_DATA_URI AIP_MODEL_DIR", "CLOUD_ML_JOB_ID CLOUD_ML_REGION"),
    ("tpu", "TPU_NAME TPU_ACCELERATOR_TYPE", "TPU_NAME TPU_ACCELERATOR_TYPE TPU_WORKER_ID"),
    ("colab", "COLAB_RELEASE_TAG COLAB_GPU", "COLAB_RELEASE_TAG COLAB_GPU"),
    ("kaggle", "KAGGLE_KERNEL_RUN_TYPE", "KAGGLE_KERNEL_RUN_TYPE KAGGLE_DOCKER_IMAGE"),
    ("databricks", "DATABRICKS_RUNTIME_VERSION", "DATABRICKS_RUNTIME_VERSION DB_CLUSTER_ID DB_INSTANCE_TYPE"),
    ("modal", "MODAL_TASK_ID", "MODAL_TASK_ID MODAL_CLOUD_PROVIDER MODAL_REGION"),
    ("runpod", "RUNPOD_POD_ID", "RUNPOD_POD_ID RUNPOD_DC_ID RUNPOD_GPU_COUNT RUNPOD_CPU_COUNT"),
    ("paperspace", "PAPERSPACE_METRIC_WORKLOAD_ID PAPERSPACE_FQDN", "PAPERSPACE_METRIC_WORKLOAD_ID"),
    ("lightning", "LIGHTNING_CLOUD_PROJECT_ID", "LIGHTNING_CLOUD_PROJECT_ID LIGHTNING_CLOUD_APP_ID"),
    (
        "github-actions",
        "GITHUB_ACTIONS",
        "GITHUB_RUN_ID GITHUB_RUN_ATTEMPT GITHUB_REPOSITORY GITHUB_WORKFLOW GITHUB_JOB GITHUB_REF_NAME",
    ),
    ("gitlab-ci", "GITLAB_CI", "CI_JOB_ID CI_JOB_NAME CI_PIPELINE_ID CI_PROJECT_PATH CI_COMMIT_REF_NAME"),
    ("codespaces", "CODESPACES", "CODESPACE_NAME"),
)

# Variables by which vendors' runtimes restrict the devices of a process.
_VISIBLE_DEVICES = (
    "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR",
    "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES", "NEURON_RT_VISIBLE_CORES", "NEURON_RT_NUM_CORES",
    "HABANA_VISIBLE_DEVICES", "HABANA_VISIBLE_MODULES", "ASCEND_RT_VISIBLE_DEVICES",
    "ASCEND_VISIBLE_DEVICES", "MLU_VISIBLE_DEVICES", "MUSA_VISIBLE_DEVICES", "MACA_VISIBLE_DEVICES",
    "XPU_VISIBLE_DEVICES", "TOPS_VISIBLE_DEVICES", "BIREN_VISIBLE_DEVICES",
)  # fmt: skip

# A variable may contain anything. Names and numbers are shorter than this.
_LONGEST = 512


def platforms(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Platform -> its variables that are set and on the allow-list.

    >>> platforms({"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "bert", "SLURM_JWT": "abc"})
    {'slurm': {'SLURM_JOB_ID': '7', 'SLURM_JOB_NAME': 'bert'}}
    """
    return {
        name: _select(environ, variables.split())
        for name, signs, variables in _PLATFORMS
        if any(environ.get(sign) for sign in signs.split())
    }


def visible_devices(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that restrict devices. An empty one is included: it hides all devices.

    >>> visible_devices({"CUDA_VISIBLE_DEVICES": "", "HOME": "/root"})
    {'CUDA_VISIBLE_DEVICES': ''}
    """
    return {name: environ[name][:_LONGEST] for name in _VISIBLE_DEVICES if name in environ}


def _select(environ: Mapping[str, str], names: list[str]) -> dict[str, str]:
    return {name: environ[name][:_LONGEST] for name in names if environ.get(name)}
