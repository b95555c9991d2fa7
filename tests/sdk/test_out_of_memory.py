"""A training that the kernel kills because its cgroup is out of memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, end_group, eventually, say, start

LIMIT_BYTES = 100 * 1024 * 1024
ROOT = Path("/sys/fs/cgroup")


@pytest.fixture
def small_cgroup() -> Iterator[Path]:
    """A cgroup (v1 or v2) with a limit of 100 MiB."""
    parent, limit = (ROOT / "memory", "memory.limit_in_bytes")
    if not parent.is_dir():
        parent, limit = ROOT, "memory.max"
    folder = parent / f"runvitals-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / limit).write_text(str(LIMIT_BYTES))
    except OSError as error:
        pytest.skip(f"this machine permits no cgroup with a memory limit ({error})")
    yield folder
    for pid in (folder / "cgroup.procs").read_text().split():
        os.kill(int(pid), 9)
    while (folder / "cgroup.procs").read_text().strip():
        pass
    folder.rmdir()


def test_out_of_memory_kills_are_distinguished_from_others(tmp_path: Path, small_cgroup: Path) -> None:
    process = start(
        tmp_path,
        f"""
        import os
        open({str(small_cgroup / "cgroup.procs")!r}, "w").write(str(os.getpid()))
        import runvitals
        run = runvitals.init(settings={{"sampling_interval": 0.1}})
        run.log({{"loss": 1.0}})
        input()
        eaten = []
        while True:
            eaten.append(bytearray(1_000_000))
        """,
    )
    try:
        journals = Journals(tmp_path)
        eventually(lambda: journals.samples())
        say(process, "eat")
        assert process.wait(PATIENCE_S) == -9
        end = journals.end()
        assert (end["state"], end["signal"], end["out_of_memory"]) == ("crashed", 9, True)
        limits = [
            dict(zip(r.keys, r.values, strict=True)).get("cgroup.memory.limitMB") for r in journals.samples()
        ]
        assert 100.0 in limits
    finally:
        end_group(process)
