"""kill -9 and a full disk at every step of what a server and its commands do.

Nothing that was acknowledged is lost, and the next start succeeds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.crash_point_runs import SmallDisks, assert_survived, killed
from tests.store.interrupted_operations import OPERATIONS
from tests.store.samples.test_crashes import needs_mounts


@pytest.mark.parametrize("operation", OPERATIONS)
def test_killed_at_every_step(folder: str, operation: str) -> None:
    assert_survived(killed(folder, operation))


@needs_mounts
@pytest.mark.parametrize("operation", OPERATIONS)
def test_disk_full_at_every_step(tmp_path: Path, small_disks: SmallDisks, operation: str) -> None:
    assert_survived(small_disks.full(tmp_path, operation))
