"""What the server tells the C library about memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

_PROGRAM = """
from runvitals.server.http import allocator

def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))

allocator.keep_little()
many = [bytearray(2000) for _ in range(20_000)]
last = many.pop()  # memory after what is freed is in use, so that the library keeps the rest
many.clear()
before = resident_kib()
allocator.return_freed_memory()
print(before - resident_kib())
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_freed_memory_is_returned() -> None:
    command = [sys.executable, "-c", _PROGRAM]
    completed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert int(completed.stdout) > 20_000
