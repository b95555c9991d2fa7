"""Writes a journal while its disk fills up and is cleared again. A program, run by `test_full_disk.py`.

    python fill_disk.py limit|tmpfs append|rotate FOLDER

`limit` uses the process's limit on file sizes; for `tmpfs`, FOLDER is a tmpfs of 256 KiB. With `rotate`, the
file is full at the same time as the disk. Prints the results as JSON.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from runvitals.journal.writer import JournalWriter


def fill_limit(folder: Path) -> Callable[[], None]:
    """Limit files to 50,001 bytes. Returns a function that removes the limit."""
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_001, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def fill_tmpfs(folder: Path) -> Callable[[], None]:
    """Use half of the space. Returns a function that frees it."""
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(128 * 1024))
    return ballast.unlink


def main(method: str, when: str, folder: Path) -> None:
    values = {f"cpu.{i}.cpu_percent": 0.5 for i in range(50)}
    journal = JournalWriter(str(folder / "run"), "monitor.n1.1", {"run": "abc"})
    free_space = {"limit": fill_limit, "tmpfs": fill_tmpfs}[method](folder)
    kept, rejected = [], []
    time_ms = 0
    while journal.sample(time_ms, values):
        kept.append(time_ms)
        time_ms += 1
    rejected.append(time_ms)
    if when == "rotate":
        journal.segment_bytes = journal.size
        if method == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (10, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        else:
            (folder / "crumbs").write_bytes(bytes(os.statvfs(folder).f_bavail * 4096))
    values["gpu.0.temp"] = 60.0  # a key whose schema does not fit
    for _ in range(5):
        time_ms += 1
        assert not journal.sample(time_ms, values)
        rejected.append(time_ms)
    lost = journal.lost
    free_space()
    for _ in range(5):
        time_ms += 1
        assert journal.sample(time_ms, values)
        kept.append(time_ms)
    journal.close()
    result = {
        "kept": kept,
        "rejected": rejected,
        "lost": lost,
        "lost_now": journal.lost,
        "rotated": journal.rotated,
    }
    print(json.dumps({**result, "error": str(journal.error), "errno": journal.error and journal.error.errno}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
