"""Facts about a run: the machine, the operating system, the program and its launcher. Read once, at start.

Nothing here waits for a network, and nothing copies the whole environment: variables come from allow-lists,
and secrets are removed from command lines and URLs.
"""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.environment import container, git, hardware, platforms, redaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runvitals.monitoring.collectors.base import Scope


def facts(scope: Scope, pid: int, cwd: str, environ: Mapping[str, str]) -> dict[str, object]:
    """Collect all facts that are available.

    Whether the git tree has changes is not among them: `git.dirty` may take seconds.

    Args:
        scope: the location of /proc and /sys, and the paths whose file systems are reported.
        pid: the training process.
        cwd: its working directory.
        environ: its environment.

    Returns:
        A JSON object. Sections that could not be parsed are listed with the reason under "unreadable".

    Example:
        >>> facts(Scope(), os.getpid(), os.getcwd(), os.environ)["cpu"]
        {'model': 'AMD EPYC 9654 96-Core Processor', 'logical_cores': 384, 'sockets': 2, 'cores': 192,
        'available': 16.0}
    """
    sections: dict[str, Callable[[], object]] = {
        "hostname": lambda: read_text(scope.path("/proc/sys/kernel/hostname")) or _uname("nodename"),
        "os": lambda: _os_name(scope),
        "kernel": lambda: read_text(scope.path("/proc/sys/kernel/osrelease")) or _uname("release"),
        "architecture": lambda: _uname("machine"),
        "boot_id": lambda: read_text(scope.path("/proc/sys/kernel/random/boot_id")),
        "uptime_s": lambda: _uptime_s(scope),
        "model": lambda: container.machine_model(scope),
        "cloud": lambda: container.cloud(scope),
        "container": lambda: container.container(scope, environ),
        "cpu": lambda: hardware.processors(scope),
        "memory": lambda: hardware.memory(scope),
        "numa": lambda: hardware.numa_nodes(scope),
        "disks": lambda: hardware.disks(scope),
        "file_systems": lambda: hardware.file_systems(scope),
        "network": lambda: hardware.interfaces(scope),
        "infiniband": lambda: hardware.infiniband(scope),
        "accelerators": lambda: hardware.accelerators(scope),
        "visible_devices": lambda: platforms.visible_devices(environ),
        "platforms": lambda: platforms.platforms(environ),
        "user": lambda: _user(pid, environ),
        "command": lambda: command_line(pid, environ),
        "cwd": lambda: cwd,
        "git": lambda: git.facts(cwd),
    }
    facts_of_run: dict[str, object] = {}
    unreadable: dict[str, str] = {}
    for name, section in sections.items():
        try:
            value = section()
        except (OSError, ValueError, IndexError) as error:
            unreadable[name] = f"{type(error).__name__}: {error}"
            continue
        if value:
            facts_of_run[name] = value
    if unreadable:
        facts_of_run["unreadable"] = unreadable
    return facts_of_run


def command_line(pid: int, environ: Mapping[str, str]) -> list[str] | None:
    """Return the command line of a process with secrets redacted; None if it has ended, or without /proc."""
    text = read_text(f"/proc/{pid}/cmdline")
    return redaction.command(text.rstrip("\0").split("\0"), environ) if text else None


def _os_name(scope: Scope) -> str | None:
    """Return the name of the distribution, `Debian GNU/Linux 12 (bookworm)`; elsewhere of the system."""
    text = read_text(scope.path("/etc/os-release")) or read_text(scope.path("/usr/lib/os-release"))
    for line in (text or "").split("\n"):
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip("\"'")
    if scope.host_root:
        return None  # the host's /etc is not mounted, and the container's is not the host's
    return f"{_uname('sysname') or sys.platform} {_uname('release') or ''}".strip()


def _uptime_s(scope: Scope) -> float | None:
    words = (read_text(scope.path("/proc/uptime")) or "").split()
    return float(words[0]) if words else None


def _user(pid: int, environ: Mapping[str, str]) -> str | None:
    """Return the owner of the process according to /etc/passwd, else to the environment.

    Does not use getpwuid, which may query a directory server.
    """
    try:
        uid = str(os.stat(f"/proc/{pid}").st_uid)
    except OSError:
        uid = ""
    for line in (read_text("/etc/passwd") or "").split("\n"):
        fields = line.split(":")
        if len(fields) > 2 and fields[2] == uid:
            return fields[0]
    return environ.get("USER") or environ.get("LOGNAME") or environ.get("USERNAME")


def _uname(field: str) -> str | None:
    return str(getattr(os.uname(), field)) if hasattr(os, "uname") else None
