"""The container and the cloud that the program runs in, detected from files only, never over a network."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.plumbing.mounts import MAX_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.monitoring.collectors.base import Scope

_HEX = frozenset("0123456789abcdef")
_ID_LENGTH = 64
_POD_SEPARATORS = frozenset("-_")
_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

# Variables set by container runtimes of clusters; the value is the image.
_IMAGE_VARIABLES = {
    "APPTAINER_CONTAINER": "apptainer",
    "SINGULARITY_CONTAINER": "singularity",
    "CH_RUNNING": "charliecloud",
    "SHIFTER_IMAGEREQUEST": "shifter",
}
# Words in the paths of cgroups and mounts.
_PATH_WORDS = (
    ("kubepods", "kubernetes"),
    ("kubelet/pods", "kubernetes"),
    ("libpod", "podman"),
    ("overlay-containers", "podman"),
    ("docker", "docker"),
    ("/lxc", "lxc"),
)

# Text in any field of the firmware (/sys/class/dmi/id) -> provider.
_CLOUDS = (
    ("Amazon EC2", "aws"),
    ("Google Compute Engine", "gcp"),
    ("7783-7084-3265-9085-8269-3286-77", "azure"),  # the asset tag; Hyper-V elsewhere has another
    ("OracleCloud.com", "oracle"),
    ("Alibaba Cloud", "alibaba"),
    ("Tencent Cloud", "tencent"),
    ("Huawei Cloud", "huawei"),
    ("DigitalOcean", "digitalocean"),
    ("Hetzner", "hetzner"),
    ("Scaleway", "scaleway"),
    ("Vultr", "vultr"),
    ("Linode", "linode"),
    ("Akamai", "linode"),
    ("IBM:Cloud Compute Server", "ibm"),
    ("Nebius", "nebius"),
    ("CrusoeCloud", "crusoe"),
    ("OpenStack", "openstack"),
)
_DMI_FIELDS = (
    "sys_vendor",
    "product_name",
    "product_version",
    "bios_vendor",
    "board_vendor",
    "chassis_vendor",
    "chassis_asset_tag",
)


def container(scope: Scope, environ: Mapping[str, str]) -> dict[str, str]:
    """kind; id, pod_uid, pod, namespace, image where they are known. {} outside any container.

    The id is that of docker, containerd, CRI-O or podman, 64 hexadecimal digits.
    """
    pid = str(scope.pids[0]) if scope.pids and not scope.host_root else "self"
    cgroups = read_text(scope.path(f"/proc/{pid}/cgroup")) or read_text(scope.path("/proc/self/cgroup")) or ""
    paths = [line.split(":", 2)[-1] for line in cgroups.split("\n")]
    # In a cgroup namespace the path is "/". The container's files are mounted from a folder named after its
    # id.
    mounts = read_text(scope.path("/proc/self/mountinfo"), MAX_BYTES) or ""
    paths += [
        fields[3]
        for line in mounts.split("\n")
        if len(fields := line.split(" ")) > 4
        and fields[4] in ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
    ]
    facts = _by_environment(environ) or {"kind": _kind(scope, paths, environ)}
    if not facts["kind"]:
        return {}
    identifiers = [part for path in paths for part in _parts(path)]
    container_id = next((part for part in identifiers if _is_container_id(part)), None)
    if container_id is not None and facts["kind"] in ("docker", "podman", "kubernetes"):
        facts["id"] = container_id
    if facts["kind"] == "kubernetes":
        facts |= _pod(scope, identifiers, environ)
    return facts


def cloud(scope: Scope) -> dict[str, str]:
    """provider; instance_type and instance_id if the firmware has them (Amazon's does). {} elsewhere."""
    firmware = _firmware(scope)
    text = "\n".join(firmware.values())
    provider = next((name for sign, name in _CLOUDS if sign in text), None)
    if provider is None:
        return {}
    facts = {"provider": provider}
    product = firmware.get("product_name", "")
    if provider == "aws" and "." in product and " " not in product:
        facts["instance_type"] = product
    asset = read_text(scope.path("/sys/class/dmi/id/board_asset_tag")) or ""
    if provider == "aws" and asset.startswith("i-"):
        facts["instance_id"] = asset
    return facts


def machine_model(scope: Scope) -> str | None:
    """Vendor and product from the firmware, `Supermicro AS -8125GS-TNHR`; None if it has neither."""
    firmware = _firmware(scope)
    words = [firmware[name] for name in ("sys_vendor", "product_name") if name in firmware]
    board = read_text(scope.path("/proc/device-tree/model")) or ""  # of boards without such firmware
    return " ".join(words) or board.rstrip("\0") or None


def _firmware(scope: Scope) -> dict[str, str]:
    texts = {name: (read_text(scope.path(f"/sys/class/dmi/id/{name}")) or "").strip() for name in _DMI_FIELDS}
    return {name: text for name, text in texts.items() if text}


def _by_environment(environ: Mapping[str, str]) -> dict[str, str] | None:
    for variable, kind in _IMAGE_VARIABLES.items():
        if image := environ.get(variable):
            return {"kind": kind, "image": image}
    return None


def _kind(scope: Scope, paths: list[str], environ: Mapping[str, str]) -> str:
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "kubernetes"
    for word, kind in _PATH_WORDS:
        if any(word in path for path in paths):
            return kind
    if os.path.exists(scope.path("/run/.containerenv")):
        return "podman"
    if os.path.exists(scope.path("/.dockerenv")):
        return "docker"
    if os.path.exists(scope.path("/.singularity.d")):
        return "singularity"
    runtime = read_text(scope.path("/run/systemd/container"))  # written by systemd, also as the init of LXC
    if runtime:
        return runtime
    kernel = read_text(scope.path("/proc/sys/kernel/osrelease")) or ""
    return "wsl" if "microsoft" in kernel.lower() else ""


def _pod(scope: Scope, identifiers: list[str], environ: Mapping[str, str]) -> dict[str, str]:
    facts = {}
    uid = next((uid for part in identifiers if (uid := _pod_uid(part))), None)
    if uid is not None:
        facts["pod_uid"] = uid
    pod = environ.get("POD_NAME") or environ.get("HOSTNAME")
    if pod:
        facts["pod"] = pod
    namespace = read_text(scope.path(_NAMESPACE)) or environ.get("POD_NAMESPACE")
    if namespace:
        facts["namespace"] = namespace
    return facts


def _parts(path: str) -> list[str]:
    """The folders of a path, without the affixes of systemd and runtimes: `cri-containerd-<id>.scope`."""
    parts = []
    for part in path.split("/"):
        part = part.removesuffix(".scope").removesuffix(".slice")
        parts.append(part)
        parts.append(part.rpartition("-")[2])
    return parts


def _is_container_id(part: str) -> bool:
    return len(part) == _ID_LENGTH and _HEX.issuperset(part)


def _pod_uid(part: str) -> str | None:
    """The uid in `pod<uid>`, `kubepods-burstable-pod<uid, _ for ->`, or as a folder of the kubelet's."""
    candidate = part.rpartition("pod")[2].replace("_", "-")
    digits = candidate.replace("-", "")
    return candidate if len(candidate) == 36 and len(digits) == 32 and _HEX.issuperset(digits) else None
