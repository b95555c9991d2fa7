"""Detection of containers and clouds, from trees of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.environment.container import cloud, container, machine_model
from tests.monitoring.collectors.trees import Tree, plant

ID = "4f1c" * 16
POD = "0a1b2c3d-0000-4000-8000-0123456789ab"
UNDER = POD.replace("-", "_")


def mount(root: str, point: str) -> str:
    return f"700 690 254:1 {root} {point} rw,relatime - ext4 /dev/vda rw\n"


def found(tmp_path: Path, tree: Tree, environ: dict[str, str] | None = None) -> dict[str, str]:
    return container(plant(tmp_path, tree), environ or {})


@pytest.mark.parametrize(
    ("cgroup", "expected"),
    [
        pytest.param(f"12:cpu:/docker/{ID}\n0::/docker/{ID}\n", {"kind": "docker", "id": ID}, id="docker v1"),
        pytest.param(
            f"0::/system.slice/docker-{ID}.scope\n", {"kind": "docker", "id": ID}, id="docker v2, systemd"
        ),
        pytest.param(
            f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container\n",
            {"kind": "podman", "id": ID},
            id="podman, rootless",
        ),
        pytest.param(
            f"11:memory:/kubepods/burstable/pod{POD}/{ID}\n",
            {"kind": "kubernetes", "id": ID, "pod_uid": POD},
            id="kubernetes v1",
        ),
        pytest.param(
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice/cri-containerd-{ID}.scope\n",
            {"kind": "kubernetes", "id": ID, "pod_uid": POD},
            id="kubernetes v2, containerd under systemd",
        ),
        pytest.param(
            f"0::/kubepods.slice/kubepods-pod{UNDER}.slice/crio-{ID}.scope\n",
            {"kind": "kubernetes", "id": ID, "pod_uid": POD},
            id="kubernetes v2, CRI-O",
        ),
        pytest.param("0::/lxc.payload.box/init.scope\n", {"kind": "lxc"}, id="lxc"),
        pytest.param("0::/user.slice/user-1000.slice/session-3.scope\n", {}, id="a person's session"),
        pytest.param("0::/system.slice/ssh.service\n", {}, id="a service"),
    ],
)
def test_container_by_cgroup_path(tmp_path: Path, cgroup: str, expected: dict[str, str]) -> None:
    assert found(tmp_path, {"proc/self/cgroup": cgroup}) == expected


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        (f"/var/lib/docker/containers/{ID}/hostname", {"kind": "docker", "id": ID}),
        (f"/containers/storage/overlay-containers/{ID}/userdata/hostname", {"kind": "podman", "id": ID}),
        (f"/var/lib/kubelet/pods/{POD}/etc-hosts", {"kind": "kubernetes", "pod_uid": POD}),
    ],
)
def test_container_in_a_cgroup_namespace_by_mounted_files(
    tmp_path: Path, root: str, expected: dict[str, str]
) -> None:
    mounts = mount("/", "/") + mount(root, "/etc/hostname")
    assert found(tmp_path, {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mounts}) == expected


def test_a_mounted_docker_folder_is_not_a_container(tmp_path: Path) -> None:
    mounts = mount("/", "/") + mount(f"/var/lib/docker/containers/{ID}/hostname", "/data")
    assert found(tmp_path, {"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mounts}) == {}


@pytest.mark.parametrize(
    ("path", "kind"),
    [(".dockerenv", "docker"), ("run/.containerenv", "podman"), (".singularity.d/", "singularity")],
)
def test_container_by_a_file_of_the_runtime(tmp_path: Path, path: str, kind: str) -> None:
    assert found(tmp_path, {"proc/self/cgroup": "0::/\n", path: ""}) == {"kind": kind}


def test_container_by_systemd(tmp_path: Path) -> None:
    assert found(tmp_path, {"run/systemd/container": "systemd-nspawn\n"}) == {"kind": "systemd-nspawn"}


def test_container_by_windows_kernel(tmp_path: Path) -> None:
    kernel = {"proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2\n"}
    assert found(tmp_path, kernel) == {"kind": "wsl"}


def test_apptainer_under_slurm_names_its_image(tmp_path: Path) -> None:
    environ = {"APPTAINER_CONTAINER": "/images/torch.sif", "SINGULARITY_CONTAINER": "/images/torch.sif"}
    assert found(tmp_path, {"proc/self/cgroup": "0::/slurm/uid_1/job_7\n"}, environ) == {
        "kind": "apptainer",
        "image": "/images/torch.sif",
    }


def test_pod_by_environment_and_service_account(tmp_path: Path) -> None:
    tree = {"var/run/secrets/kubernetes.io/serviceaccount/namespace": "research"}
    tree["var/run/secrets/kubernetes.io/serviceaccount/token"] = "secret"
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "bert-0-x7k2p"}
    assert found(tmp_path, tree, environ) == {
        "kind": "kubernetes",
        "pod": "bert-0-x7k2p",
        "namespace": "research",
    }


def dmi(**fields: str) -> Tree:
    return {f"sys/class/dmi/id/{name}": f"{text}\n" for name, text in fields.items()}


@pytest.mark.parametrize(
    ("firmware", "expected"),
    [
        pytest.param(
            dmi(sys_vendor="Amazon EC2", product_name="p5.48xlarge", board_asset_tag="i-0123456789abcdef0"),
            {"provider": "aws", "instance_type": "p5.48xlarge", "instance_id": "i-0123456789abcdef0"},
            id="aws",
        ),
        pytest.param(
            dmi(sys_vendor="Xen", product_name="HVM domU", bios_vendor="Amazon EC2"),
            {"provider": "aws"},
            id="aws, Xen",
        ),
        pytest.param(
            dmi(sys_vendor="Google", product_name="Google Compute Engine"), {"provider": "gcp"}, id="google"
        ),
        pytest.param(
            dmi(
                sys_vendor="Microsoft Corporation",
                product_name="Virtual Machine",
                chassis_asset_tag="7783-7084-3265-9085-8269-3286-77",
            ),
            {"provider": "azure"},
            id="azure",
        ),
        pytest.param(
            dmi(
                sys_vendor="Microsoft Corporation",
                product_name="Virtual Machine",
                chassis_asset_tag="0123-4567",
            ),
            {},
            id="Hyper-V at home",
        ),
        pytest.param(
            dmi(sys_vendor="QEMU", chassis_asset_tag="OracleCloud.com"), {"provider": "oracle"}, id="oracle"
        ),
        pytest.param(dmi(sys_vendor="Supermicro", product_name="AS -8125GS-TNHR"), {}, id="own machine"),
        pytest.param({}, {}, id="no firmware"),
    ],
)
def test_cloud_by_firmware(tmp_path: Path, firmware: Tree, expected: dict[str, str]) -> None:
    assert cloud(plant(tmp_path, firmware)) == expected


def test_model_of_the_machine(tmp_path: Path) -> None:
    assert machine_model(plant(tmp_path, {})) is None
    tree = dmi(sys_vendor="Supermicro", product_name="AS -8125GS-TNHR")
    assert machine_model(plant(tmp_path / "amd", tree)) == "Supermicro AS -8125GS-TNHR"
    board = {"proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0"}
    assert machine_model(plant(tmp_path / "jetson", board)) == "NVIDIA Jetson AGX Orin Developer Kit"
