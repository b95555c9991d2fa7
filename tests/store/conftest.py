from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from tests.store.crash_point_runs import SmallDisks


@pytest.fixture
def folder() -> Iterator[str]:
    """A folder for a store, in memory if possible, so that tests do not wait for a disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as path:
        yield os.path.join(path, "store")


@pytest.fixture(scope="module")
def small_disks() -> Iterator[SmallDisks]:
    with SmallDisks() as disks:
        yield disks
