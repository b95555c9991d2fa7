"""What helps against what sources and systems complain of.

Many reasons carry their remedy themselves, behind a semicolon or a colon ("…: load the driver (modprobe
amdgpu)"); these are for the others.
"""

from __future__ import annotations

# (words that are all in the reason, in small letters; what helps)
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
    (("no space left",), "free some space, or set RUNVITALS_DIR to a folder that has some"),
    (("/proc/", "permission"), "run as the user who owns the processes, or give the capability SYS_PTRACE"),
    (("psutil could not be imported",), "pip install psutil"),
    (("connection refused",), "start what is to listen there, or correct the address in the settings"),
    (("name or service not known",), "correct the host's name in the settings, or the resolver"),
    (("name resolution",), "look to the resolver (/etc/resolv.conf): no name can be looked up"),
    (("certificate verify failed",), "install the authority's certificate, or set SSL_CERT_FILE"),
    (("unknown collector",), "correct the setting `collectors` (RUNVITALS_COLLECTORS)"),
    (("probe failed",), "please report it, with a bundle: runvitals doctor --bundle FILE"),
    (("permission denied",), "run as a user who may read it, or give this one the right to"),
)


def remedy(reason: str) -> str:
    """What helps against a reason, "" where nothing is known to, or where the reason itself says it.

    Example:
        >>> remedy("only root may read /sys/class/powercap/intel-rapl:0/energy_uj")
        'as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)'
    """
    small = reason.lower()
    return next((text for words, text in _KNOWN if all(word in small for word in words)), "")
