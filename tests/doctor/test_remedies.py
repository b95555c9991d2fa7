"""Every remedy applies to a reason that the code or the system can report."""

from __future__ import annotations

import ast
import ctypes
import errno
import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.collectors import sources
from runvitals.doctor.remedies import REMEDIES, remedy
from runvitals.doctor.sources import _NODES

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
    reasons = [*texts(), *errors_of_the_system(), *permissions]
    unused = {text for _, text in REMEDIES} - {remedy(reason) for reason in reasons}
    assert unused == set()


@pytest.mark.parametrize("fault", sources.FAULTS)
def test_faults_of_collectors_have_a_remedy(fault: str) -> None:
    assert remedy(f"{fault}: KeyError: 'door'")


def test_unknown_reasons_have_no_remedy() -> None:
    assert remedy("no network interface uses the driver ena") == ""


def test_reasons_that_include_their_remedy_get_no_other() -> None:
    from runvitals.collectors.nvidia.processes import HIDDEN

    assert "--pid=host" in HIDDEN
    assert remedy(HIDDEN) == ""
