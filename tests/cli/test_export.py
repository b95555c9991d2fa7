"""The command `runvitals export`."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.cli import main
from runvitals.journal import frames
from runvitals.journal.writer import JournalWriter
from tests.readers.journals.journals import T0, Monitor, Trainer


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RUNVITALS_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def two_hosts(data: Path) -> None:
    first, second = Monitor(data, host="a"), Monitor(data, host="b", start_ms=T0 + 1)
    first.sample(T0, {"cpu": 0.1 + 0.2, "gpu.0.temp": math.nan})
    second.sample(T0 + 500, {"cpu": 2.0, 'disk."/a,b".usageGB': 1e-320})
    first.sample(T0 + 1000, {"cpu": math.inf})


def test_csv_has_a_column_per_key_and_rows_ordered_by_time(
    two_hosts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "abc"]) == 0
    assert capsys.readouterr().out == (
        'time_ms,time,host,cpu,gpu.0.temp,"disk.""/a,b"".usageGB"\n'
        "1760000000000,2025-10-09T08:53:20.000Z,a,0.30000000000000004,,\n"
        "1760000000500,2025-10-09T08:53:20.500Z,b,2.0,,1e-320\n"
        "1760000001000,2025-10-09T08:53:21.000Z,a,inf,,\n"
    )


def test_jsonl_has_null_for_gaps_and_omits_missing_values(
    two_hosts: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "abc", "--format", "jsonl"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == {
        "time_ms": T0,
        "time": "2025-10-09T08:53:20.000Z",
        "host": "a",
        "metrics": {"cpu": 0.30000000000000004, "gpu.0.temp": None},
    }
    assert [row["metrics"].get("cpu") for row in rows] == [0.30000000000000004, 2.0, None]


def test_selected_keys_to_a_file(two_hosts: None, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "abc", "--keys", "gpu.*", "disk*", "-o", str(data / "out.csv")]) == 0
    rows = list(csv.reader((data / "out.csv").read_text().splitlines()))
    assert rows[0] == ["time_ms", "time", "host", "gpu.0.temp", 'disk."/a,b".usageGB']
    assert [row[0] for row in rows[1:]] == [str(T0), str(T0 + 500)]
    assert capsys.readouterr().out == ""


def test_logged_rows(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = Trainer(data, rank=3)
    trainer.log(T0, 1, loss=0.5, ok=True, note="a\nb", nested={"n": 3, "list": [1, math.nan]})
    assert main(["export", "abc", "--history"]) == 0
    heading, row = csv.reader(io.StringIO(capsys.readouterr().out))
    assert heading == [
        "time_ms",
        "time",
        "host",
        "rank",
        "step",
        "loss",
        "ok",
        "note",
        "nested.n",
        "nested.list",
    ]
    assert row[2:] == ["node1", "3", "1", "0.5", "True", "a\nb", "3", "[1, null]"]
    assert main(["export", "abc", "--history", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["nested.list"] == [1, None]


def test_damage_is_reported_and_the_rest_exported(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monitor = Monitor(data)
    for i in range(10):
        monitor.sample(T0 + i, {"cpu": float(i)})
    path = Path(monitor.journal.path)
    broken = bytearray(path.read_bytes())
    broken[len(broken) // 2] ^= 0xFF
    path.write_bytes(broken)
    assert main(["export", "abc"]) == 0
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 1 + 9
    assert "are damaged and were skipped" in printed.err


@settings(max_examples=20)
@given(values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
def test_numbers_are_exported_exactly(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    directory = tmp_path_factory.mktemp("data")
    monitor = Monitor(directory)
    for i, value in enumerate(values):
        monitor.sample(T0 + i, {"v": value})
    main(["export", "abc", "--dir", str(directory), "-o", str(directory / "out.csv")])
    read = [float(row["v"]) for row in csv.DictReader((directory / "out.csv").read_text().splitlines())]
    assert [struct.pack("<d", v) for v in read] == [struct.pack("<d", v) for v in values]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux")
@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_a_full_disk_is_named_with_what_to_do(
    two_hosts: None, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    assert main(["export", "abc", "--format", format, "-o", "/dev/full"]) == 1
    assert capsys.readouterr().err == (
        "runvitals: /dev/full: No space left on device; free disk space, or choose a folder on another disk\n"
    )


def test_a_spreadsheet_runs_no_text_as_a_formula(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    about = {"run": "abc", "host": "=host", "role": "train", "pid": 1}
    train = JournalWriter(str(data / "runs/abc"), "train.node1.1.1", about)
    values = {"=key": 1.0, "note": "=cmd|'/C calc'!A0", "at": "@SUM(1)", "number": "-1.5"}
    train.json(frames.HISTORY, {"t": T0, "step": 0, "data": values})
    train.close()
    assert main(["export", "abc", "--history"]) == 0
    rows = list(csv.reader(capsys.readouterr().out.splitlines()))
    assert rows[0][5:] == ["'=key", "note", "at", "number"]
    assert rows[1][2] == "'=host"
    assert rows[1][5:] == ["1.0", "'=cmd|'/C calc'!A0", "'@SUM(1)", "-1.5"]


def test_a_file_is_readable_by_its_owner_only(two_hosts: None, data: Path) -> None:
    before = os.umask(0)
    try:
        assert main(["export", "abc", "-o", str(data / "new.csv")]) == 0
        (data / "shared.csv").touch(0o644)
        assert main(["export", "abc", "-o", str(data / "shared.csv")]) == 0
    finally:
        os.umask(before)
    assert [(data / name).stat().st_mode & 0o777 for name in ("new.csv", "shared.csv")] == [0o600, 0o644]
