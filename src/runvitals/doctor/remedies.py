"""Remedies for the reasons that sources and checks report.

Many reasons already include a remedy ("…: load the driver (modprobe amdgpu)"); these are for the others.
"""

from __future__ import annotations

# (lower-case words that all occur in the reason, remedy)
_KNOWN: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("pid namespace",),
        "start the container with --pid=host (docker, podman) or hostPID: true (Kubernetes)",
    ),
    (
        ("/dev/nvidiactl", "is loaded"),
        "give the container its GPUs: docker run --gpus all; in Kubernetes the resource nvidia.com/gpu",
    ),
    (
        ("driver_capabilities",),
        "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    ),
    (
        ("only root may read", "energy_uj"),
        "as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)",
    ),
    (("/dev/kfd", "permission"), "add the user to the groups render and video, and log in again"),
    (("/dev/dri", "permission"), "add the user to the groups render and video, and log in again"),
    (("without psi",), "start the kernel with psi=1"),
    (("no space left",), "free disk space, or set RUNVITALS_DIR to a folder on another disk"),
    (("/proc/", "permission"), "run as the owner of the processes, or grant the capability SYS_PTRACE"),
    (("psutil could not be imported",), "pip install psutil"),
    (("connection refused",), "start the service, or correct the address in the settings"),
    (("name or service not known",), "correct the host name in the settings, or check the resolver"),
    (("name resolution",), "check the resolver (/etc/resolv.conf): name resolution fails"),
    (("certificate verify failed",), "install the CA certificate, or set SSL_CERT_FILE"),
    (("unknown collector",), "correct the setting `collectors` (RUNVITALS_COLLECTORS)"),
    (("probe failed",), "please report this with a bundle: runvitals doctor --bundle FILE"),
    (("permission denied",), "run as a user with read access, or grant it to this user"),
)


def remedy(reason: str) -> str:
    """The remedy for a reason; "" if none is known, or if the reason already includes it.

    Example:
        >>> remedy("only root may read /sys/class/powercap/intel-rapl:0/energy_uj")
        'as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)'
    """
    small = reason.lower()
    return next((text for words, text in _KNOWN if all(word in small for word in words)), "")
