"""Checks versions, container, limits and clock of this machine."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any

import runvitals
from runvitals.monitoring.collectors.base import Scope, read_text
from runvitals.monitoring.collectors.plumbing.cgroup import available_cpu_count, locate
from runvitals.monitoring.environment.container import container
from runvitals.tools.doctor.finding import Check
from runvitals.version import __version__

_GIB = 2.0**30
# The inode of the kernel's first PID namespace, the host's (PROC_PID_INIT_INO).
_HOST_NAMESPACE = "pid:[4026531836]"
# The driver that reports processes by their PIDs on the host.
_NVIDIA = "/dev/nvidiactl"
# Kernel modules of accelerators whose version the kernel reports.
_MODULES = ("nvidia", "amdgpu", "neuron", "habanalabs", "gasket", "xe", "i915")
# A time before this program was written: a clock that shows an earlier one was never set.
_EARLIEST_S = 1_750_000_000
_ADJTIMEX_BYTES = 256
_TIME_ERROR = 5


def findings(values: Mapping[str, Any]) -> Iterator[Check]:
    """Check this machine, with the files below `values["host_root"]`."""
    scope = Scope(values["host_root"], [os.getpid()])
    yield from _versions(scope)
    yield from _extras()
    yield _container(scope)
    yield _pid_namespace()
    yield from _limits(scope)
    yield _clock()


def _versions(scope: Scope) -> Iterator[Check]:
    yield Check("system", "runvitals", "PASS", f"{__version__} in {os.path.dirname(runvitals.__file__)}")
    interpreter = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    yield Check("system", "python", "PASS", interpreter)
    kernel = read_text(scope.path("/proc/sys/kernel/osrelease")) or platform.release()
    yield Check("system", "kernel", "PASS", f"{platform.system()} {kernel} {platform.machine()}")
    for module in _MODULES:
        folder = scope.path(f"/sys/module/{module}")
        if os.path.isdir(folder):
            version = read_text(f"{folder}/version") or "part of the kernel"
            yield Check("system", f"driver {module}", "PASS", version)


def extras() -> dict[str, dict[str, str]]:
    """Return extra → package → version, "" if not installed; {} if runvitals itself is not installed.

    The extra `all` is omitted: it consists of the others.
    """
    try:
        requirements = metadata.requires("runvitals") or []
    except metadata.PackageNotFoundError:
        return {}
    packages: dict[str, dict[str, str]] = {}
    for line in requirements:
        requirement, _, marker = line.partition(";")
        _, quoted, rest = marker.partition("extra ==")
        extra = rest.strip().split("'" if "'" in rest else '"')[1] if quoted else ""
        name = _name(requirement)
        if extra not in ("", "all") and name != "runvitals":
            packages.setdefault(extra, {})[name] = _version(name)
    return packages


def _extras() -> Iterator[Check]:
    by_extra = extras()
    if not by_extra:
        yield Check(
            "system", "extras", "PARTIAL", "runvitals runs from source and is not installed",
            "run pip install -e . in its folder",
        )  # fmt: skip
    for extra, packages in sorted(by_extra.items()):
        missing = sorted(name for name, version in packages.items() if not version)
        versions = ", ".join(f"{name} {version}" for name, version in sorted(packages.items()) if version)
        name = f"extra {extra}"
        if not missing:
            yield Check("system", name, "PASS", versions)
        else:
            text = f"{', '.join(missing)} not installed"
            remedy = f"if you need it: pip install 'runvitals[{extra}]'"
            yield Check("system", name, "PARTIAL" if versions else "ABSENT", text, remedy)


def _name(requirement: str) -> str:
    """Return the package's name in `uvicorn[standard]>=0.30`."""
    end = next((at for at, sign in enumerate(requirement) if sign in "[<>=!~ ("), len(requirement))
    return requirement[:end].strip()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _container(scope: Scope) -> Check:
    about = container(scope, os.environ)
    if not about:
        return Check("system", "container", "PASS", "none")
    return Check("system", "container", "PASS", ", ".join(f"{key} {text}" for key, text in about.items()))


def _pid_namespace() -> Check:
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return Check("system", "PID namespace", "ABSENT", f"{sys.platform} has none")
    if namespace == _HOST_NAMESPACE:
        return Check("system", "PID namespace", "PASS", "the host's")
    if not os.path.exists(_NVIDIA):
        return Check("system", "PID namespace", "PASS", "not the host's; not relevant for the drivers here")
    return Check(
        "system", "PID namespace", "PARTIAL",
        "not the host's: metrics of single processes (GPU memory, GPU share) may be unavailable",
        "if gpu.process.* is missing: docker run --pid=host, Kubernetes hostPID: true",
    )  # fmt: skip


def _limits(scope: Scope) -> Iterator[Check]:
    cgroup = locate(scope)
    versions = {folder.version for folder in (cgroup.cpu, cgroup.memory) if folder is not None}
    if not versions:
        yield Check("system", "cgroup", "ABSENT", "no cgroup file system is mounted: limits are unknown")
        return
    cpu, memory = cgroup.cpu_limit(), cgroup.memory_limit()
    kind = " and ".join(f"v{version}" for version in sorted(versions))
    cpus = f"{available_cpu_count(scope, cgroup):g} CPUs available"
    cpu_text = f"quota of {cpu.value:g} CPUs ({cpu.folder})" if cpu else "no quota"
    yield Check("system", "cgroup CPU", "PASS", f"{kind}: {cpu_text}, {cpus}")
    if memory:
        text = f"{kind}: limit of {memory.value / _GIB:.1f} GiB ({memory.folder})"
    else:
        text = f"{kind}: no limit, the machine has {cgroup.total_memory / _GIB:.1f} GiB"
    yield Check("system", "cgroup memory", "PASS", text)


def _clock() -> Check:
    now_s = time.time()
    moment = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now_s))
    if now_s < _EARLIEST_S:
        text = f"{moment}: the clock was never set; samples would get wrong times"
        return Check("system", "clock", "FAIL", text, "set it: timedatectl set-ntp true, or chronyd")
    if _is_synchronized() is False:
        text = f"{moment}; the kernel reports that it is not synchronized: hosts may disagree about the time"
        return Check("system", "clock", "PARTIAL", text, "run an NTP client: chronyd, systemd-timesyncd")
    return Check("system", "clock", "PASS", moment)


def _is_synchronized() -> bool | None:
    """Return whether the kernel's clock is synchronized; None if unknown."""
    if sys.platform != "linux":
        return None
    import ctypes

    # struct timex with modes = 0: nothing is set, the state of the clock is returned.
    timex = ctypes.create_string_buffer(_ADJTIMEX_BYTES)
    try:
        state = int(ctypes.CDLL(None).adjtimex(timex))
    except AttributeError:  # a C library without it
        return None
    return None if state < 0 else state != _TIME_ERROR
