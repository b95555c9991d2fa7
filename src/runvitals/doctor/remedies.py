"""Remedies for the reasons that sources and checks report.

Many reasons already include a remedy ("…: load the driver (modprobe amdgpu)"); these are for the others. They
are found by words in the reason, because reasons contain paths, names and errors of the system.
"""

from __future__ import annotations

# (lower-case words that all occur in the reason, remedy). The first match applies.
REMEDIES: tuple[tuple[tuple[str, ...], str], ...] = (
    # Reasons of runvitals
    (
        ("only root may read", "energy_uj"),
        "as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)",
    ),
    (("without psi",), "start the kernel with psi=1"),
    (("psutil could not be imported",), "pip install psutil"),
    (("unknown collector",), "correct the setting `collectors` (RUNVITALS_COLLECTORS)"),
    (("the probe failed",), "please report this with a bundle: runvitals doctor --bundle FILE"),
    (("the probe returned an invalid collector",), "update or remove the package that provides it"),
    (("a built-in collector has this name",), "rename the collector in the package that provides it"),
    (("/dev/kfd", "permission"), "add the user to the groups render and video, and log in again"),
    # Errors of the system
    (("no space left",), "free disk space, or set RUNVITALS_DIR to a folder on another disk"),
    (("/proc/", "permission"), "run as the owner of the processes, or grant the capability SYS_PTRACE"),
    (("connection refused",), "start the service, or correct the address in the settings"),
    (("name or service not known",), "correct the host name in the settings, or check the resolver"),
    (("name resolution",), "check the resolver (/etc/resolv.conf): name resolution fails"),
    (("certificate verify failed",), "install the CA certificate, or set SSL_CERT_FILE"),
    (("permission denied",), "run as a user with read access, or grant it to this user"),
)


def remedy(reason: str) -> str:
    """The remedy for a reason; "" if none is known, or if the reason already includes it.

    Example:
        >>> remedy("only root may read /sys/class/powercap/intel-rapl:0/energy_uj")
        'as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)'
    """
    lower = reason.lower()
    return next((text for words, text in REMEDIES if all(word in lower for word in words)), "")
