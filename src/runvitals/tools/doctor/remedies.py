"""Remedies for the reasons that sources and checks report.

An error that is at hand is recognized by its type and number. The reasons of sources are texts, because they
come from the monitor or a journal: they are recognized by the constants of the module that reports them, and
by the system's texts for its errors. Many reasons include a remedy themselves ("…: load the driver (modprobe
amdgpu)"); these are for the others.
"""

from __future__ import annotations

import errno
import os

from runvitals.findings.remedies import PRESSURE
from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.host.energy import ONLY_ROOT
from runvitals.monitoring.collectors.host.pressure import WITHOUT_PSI
from runvitals.monitoring.collectors.host.psutil_sources import NO_PSUTIL

_DENIED = os.strerror(errno.EACCES)
_FREE_SPACE = "free disk space, or set RUNVITALS_DIR to a folder on another disk"
_START_SERVICE = "start the service, or correct the address in the settings"
_CORRECT_HOST = "correct the host name in the settings, or check the resolver"
_RESOLVER = "check the resolver (/etc/resolv.conf): name resolution fails"
_CERTIFICATE = "install the CA certificate, or set SSL_CERT_FILE"
_MAY_NOT_READ = "run as a user with read access, or grant it to this user"

# (texts that all occur in the reason, remedy). The first match applies.
REMEDIES: tuple[tuple[tuple[str, ...], str], ...] = (
    # Reasons of runvitals
    (
        (ONLY_ROOT, "energy_uj"),
        "as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)",
    ),
    ((WITHOUT_PSI,), PRESSURE),
    ((NO_PSUTIL,), "pip install psutil"),
    ((sources.UNKNOWN,), "correct the setting `collectors` (RUNVITALS_COLLECTORS)"),
    ((sources.PROBE_FAILED,), "please report this with a bundle: runvitals doctor --bundle FILE"),
    ((sources.INVALID,), "update or remove the package that provides it"),
    ((sources.NAME_TAKEN,), "rename the collector in the package that provides it"),
    (("/dev/kfd", _DENIED), "add the user to the groups render and video, and log in again"),
    # Errors of the system
    ((os.strerror(errno.ENOSPC),), _FREE_SPACE),
    (("/proc/", _DENIED), "run as the owner of the processes, or grant the capability SYS_PTRACE"),
    ((os.strerror(errno.ECONNREFUSED),), _START_SERVICE),
    (("Name or service not known",), _CORRECT_HOST),
    (("name resolution",), _RESOLVER),
    (("certificate verify failed",), _CERTIFICATE),
    ((_DENIED,), _MAY_NOT_READ),
)
_BY_NUMBER = {errno.ENOSPC: _FREE_SPACE, errno.ECONNREFUSED: _START_SERVICE, errno.EACCES: _MAY_NOT_READ}
# EAI_NONAME and EAI_AGAIN, of glibc and of macOS.
_BY_RESOLVER_NUMBER = {-2: _CORRECT_HOST, 8: _CORRECT_HOST, -3: _RESOLVER, 2: _RESOLVER}


def remedy(reason: str) -> str:
    """Return the remedy for a reason; "" if none is known, or if the reason already includes it.

    Example:
        >>> remedy("only root may read /sys/class/powercap/intel-rapl:0/energy_uj")
        'as root: chmod a+r /sys/class/powercap/*/energy_uj (lost at reboot; a udev rule keeps it)'
    """
    lower = reason.lower()
    return next((text for parts, text in REMEDIES if all(part.lower() in lower for part in parts)), "")


def remedy_of(error: BaseException) -> str:
    """Return the remedy for an error, or for the error that caused it; "" if none is known.

    Example:
        >>> remedy_of(ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
        'start the service, or correct the address in the settings'
    """
    cause: BaseException | None = error
    while cause is not None:
        kind = type(cause).__name__  # of modules that only clients of a network may import
        if kind == "SSLCertVerificationError":
            return _CERTIFICATE
        numbers = _BY_RESOLVER_NUMBER if kind == "gaierror" else _BY_NUMBER
        text = numbers.get(cause.errno or 0) if isinstance(cause, OSError) else None
        if text:
            return text
        cause = cause.__cause__
    return remedy(str(error))
