"""A full disk: the writer continues and reports the loss, and no file ends in an incomplete record."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames, paths
from runvitals.journal.reader import Tail

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "fill_disk.py"
NAMESPACE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def may_mount() -> bool:
    try:
        return (
            subprocess.run(
                [*NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True
            ).returncode
            == 0
        )
    except FileNotFoundError:
        return False


needs_mounts = pytest.mark.skipif(not may_mount(), reason="this machine does not allow mounting file systems")


def fill(command: list[str]) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.parametrize("when", ["append", "rotate"])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on file sizes")
def test_a_limit_on_file_sizes(when: str, tmp_path: Path) -> None:
    result = fill([sys.executable, str(PROGRAM), "limit", when, str(tmp_path)])
    assert result["errno"] == errno.EFBIG
    check(tmp_path / "run", when, result)


@pytest.mark.parametrize("when", ["append", "rotate"])
@needs_mounts
def test_a_full_file_system(when: str, tmp_path: Path) -> None:
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    script = 'mount -t tmpfs -o size=256k none "$2" && "$0" "$1" tmpfs "$4" "$2" && cp -r "$2" "$3"'
    result = fill([*NAMESPACE, "sh", "-c", script, sys.executable, str(PROGRAM), str(disk), str(kept), when])
    assert result["errno"] == errno.ENOSPC
    check(kept / "run", when, result)


def check(folder: Path, when: str, result: dict[str, Any]) -> None:
    """The journal contains every record that the writer wrote, and reports the others as lost."""
    tail = Tail(str(folder))
    records = list(tail.poll())
    [writer] = tail.writers.values()
    assert tail.problems == []
    assert (writer.torn_bytes, writer.missing) == (0, 0)
    assert [r.time_ms for r in records if r.type == frames.SAMPLE] == result["kept"]
    last = records[-1]
    assert dict(zip(last.keys, last.values, strict=True))["gpu.0.temp"] == 60.0

    lost = len(result["rejected"]) + 1  # and the schema of the new key
    [event] = [r.value for r in records if r.type == frames.EVENT]
    assert (event["name"], event["level"], event["count"]) == ("records_lost", "error", lost)
    assert event["text"].startswith(f"{lost} records could not be written: [Errno")
    assert "monitor.n1.1" in result["error"]
    assert (result["lost"], result["lost_now"]) == (lost, 0)

    expected = [0, 1] if when == "rotate" else [0]
    assert paths.segments(str(folder)) == {"monitor.n1.1": expected}
    assert [r.value["segment"] for r in records if r.type == frames.START] == expected
    assert [Path(path).name for path in result["rotated"]] == (
        ["monitor.n1.1.00000.rvj"] if when == "rotate" else []
    )


@needs_mounts
def test_a_read_only_file_system_is_named(tmp_path: Path) -> None:
    folder = str(tmp_path / "run")
    program = f"from runvitals.journal.writer import JournalWriter as W; W({folder!r}, 'monitor.n1.1', {{}})"
    script = 'mount -t tmpfs none "$2" && mkdir "$2/run" && mount -o remount,ro "$2" && exec "$0" -c "$1"'
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [*NAMESPACE, "sh", "-c", script, sys.executable, program, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    message = f"OSError: [Errno 30] Read-only file system: '{tmp_path}/run/monitor.n1.1.00000.rvj'"
    assert done.stderr.splitlines()[-1] == message
