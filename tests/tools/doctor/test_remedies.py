"""Every remedy applies to a reason that the code or the system can report."""

from __future__ import annotations

import ast
import ctypes
import errno
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.monitoring.collectors import sources
from runvitals.monitoring.collectors.host.energy import ONLY_ROOT
from runvitals.tools.doctor.remedies import REMEDIES, remedy, remedy_of
from runvitals.tools.doctor.sources import _NODES

COLLECTORS = Path(sources.__file__).parent
EAI_NONAME, EAI_AGAIN = -2, -3


def texts() -> Iterator[str]:
    """The texts in the code of the collectors; the values in f-strings are omitted."""
    for path in COLLECTORS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value for part in node.values if isinstance(part, ast.Constant))
                yield " ".join(str(part) for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
                yield node.value


def errors_of_the_system() -> list[str]:
    library = ctypes.CDLL(None)
    library.gai_strerror.restype = ctypes.c_char_p
    return [
        os.strerror(errno.ENOSPC),
        os.strerror(errno.ECONNREFUSED),
        str(PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/proc/4711/io")),
        os.strerror(errno.EACCES),
        library.gai_strerror(EAI_NONAME).decode(),
        library.gai_strerror(EAI_AGAIN).decode(),
        str(ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")),
    ]


@pytest.mark.skipif(
    os.name != "posix" or not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="glibc"
)
def test_every_remedy_applies_to_a_reason_that_can_occur() -> None:
    permissions = [f"{node}: permission denied for user 1000" for node in _NODES]
    energy = f"{ONLY_ROOT} /sys/class/powercap/intel-rapl:0/energy_uj"
    reasons = [*texts(), *errors_of_the_system(), *permissions, energy]
    unused = {text for _, text in REMEDIES} - {remedy(reason) for reason in reasons}
    assert unused == set()


@pytest.mark.parametrize("fault", sources.FAULTS)
def test_faults_of_collectors_have_a_remedy(fault: str) -> None:
    assert remedy(f"{fault}: KeyError: 'door'")


def test_unknown_reasons_have_no_remedy() -> None:
    assert remedy("no network interface uses the driver ena") == ""


def test_reasons_that_include_their_remedy_get_no_other() -> None:
    from runvitals.monitoring.collectors.nvidia.processes import HIDDEN

    assert "--pid=host" in HIDDEN
    assert remedy(HIDDEN) == ""


def caused_by(cause: OSError) -> ConnectionError:
    error = ConnectionError("could not reach https://runs.example.org")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Verbindungsaufbau abgelehnt"), "start the service"),
        (socket.gaierror(socket.EAI_NONAME, "unbekannt"), "correct the host name"),
        (socket.gaierror(socket.EAI_AGAIN, "später"), "check the resolver"),
        (ssl.SSLCertVerificationError(1, "abgelaufen"), "install the CA certificate"),
        (PermissionError(errno.EACCES, "Keine Berechtigung"), "run as a user with read access"),
        (TimeoutError("timed out"), ""),
    ],
)
def test_errors_are_recognized_by_their_kind(cause: OSError, text: str) -> None:
    """Not by their words, which another language or release changes."""
    assert remedy_of(cause).startswith(text)
    assert remedy_of(caused_by(cause)).startswith(text)
