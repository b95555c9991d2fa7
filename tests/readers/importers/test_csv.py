"""Import of CSV files as spreadsheets and trackers write them."""

from __future__ import annotations

import errno
import gzip
import math
import os
from pathlib import Path

import pytest

import runvitals
from runvitals.cli import main
from runvitals.readers.importers.csv_files import table
from runvitals.readers.importers.csv_files.cells import DecimalMark, decimal_mark, number, time_ms
from runvitals.readers.importers.run_draft import RunDescription, RunDraft

T0_S = 1_700_000_000


def imported(path: Path, data: Path, *more: str) -> list[str]:
    """Import a file or folder; the ids of the runs."""
    assert main(["import", f"csv:{path}", "--dir", str(data), *more]) == 0
    return sorted(os.listdir(data / "runs"))


def rows_of(
    tmp_path: Path, content: str | bytes, name: str = "case.csv"
) -> list[tuple[object, dict[str, object]]]:
    """Import a file with this content; the step and the values of each row."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (run,) = imported(path, tmp_path / "data")
    return [(row.step, dict(row.data)) for row in runvitals.open_run(run, str(tmp_path / "data")).history()]


def refused(tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]) -> str:
    path = tmp_path / "case.csv"
    path.write_text(content, encoding="utf-8")
    assert main(["import", f"csv:{path}", "--dir", str(tmp_path / "data")]) == 1
    assert not list((tmp_path / "data").rglob("*.rvj"))
    return capsys.readouterr().err


def test_columns_are_known_by_any_case(tmp_path: Path) -> None:
    content = "Step,Timestamp,Loss\n1,2024-01-01T00:00:00+00:00,0.5\n2,2024-01-01T00:00:01+00:00,0.4\n"
    assert rows_of(tmp_path, content) == [(1, {"Loss": 0.5}), (2, {"Loss": 0.4})]
    (run,) = os.listdir(tmp_path / "data" / "runs")
    times = [row.time_ms for row in runvitals.open_run(run, str(tmp_path / "data")).history()]
    assert times == [1_704_067_200_000, 1_704_067_201_000]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_a_spreadsheet_with_a_decimal_comma(tmp_path: Path, encoding: str) -> None:
    content = "step;loss;name\r\n1;0,5;Größe\r\n2;1.234,5;Maß\r\n3;1.234;x\r\n".encode(encoding)
    assert rows_of(tmp_path, content) == [
        (1, {"loss": 0.5, "name": "Größe"}),
        (2, {"loss": 1234.5, "name": "Maß"}),
        (3, {"loss": 1234.0, "name": "x"}),
    ]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_encodings_with_two_or_four_bytes(tmp_path: Path, encoding: str) -> None:
    assert rows_of(tmp_path, "step,loss\n1,0.5\n".encode(encoding)) == [(1, {"loss": 0.5})]


def test_a_packed_file(tmp_path: Path) -> None:
    content = gzip.compress(b'step,note,loss\n1,"a\n""b""",0.5\n')
    assert rows_of(tmp_path, content, "case.csv.gz") == [(1, {"note": 'a\n"b"', "loss": 0.5})]
    assert os.listdir(tmp_path / "data" / "runs")[0].startswith("case-")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (gzip.compress(b"step,loss\n" + b"1,0.5\n2,0.25\n" * 1000)[:-9], "the packed content is damaged"),
        (gzip.compress(b"step,loss\n" + b"1,0.5\n" * 100_000), "unpacks to more than 20 times its size"),
        (b"step,loss\n1," + b"1" * 2000 + b"\n", "a line has more than 1,000 characters"),
        (b"1,0.5\n2,0.25\n", "line 1: the first line must have the names of the columns, and it has numbers"),
    ],
)
def test_contents_that_are_refused(
    tmp_path: Path,
    content: bytes,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(table, "_UNPACKED", (1000, 20))
    monkeypatch.setattr(table, "_MAX_LINE", 1000)
    path = tmp_path / "case.csv"
    path.write_bytes(content)
    assert main(["import", f"csv:{path}", "--dir", str(tmp_path / "data")]) == 1
    assert why in capsys.readouterr().err


def test_lines_before_the_header(tmp_path: Path) -> None:
    assert rows_of(tmp_path, "\n# made by a tool\n\nstep,loss\n1,0.5\n") == [(1, {"loss": 0.5})]


def test_times_of_another_form_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(rows_of(tmp_path, "time,loss\n3/31/2024 2:30 PM,1\n")) == 1
    assert "the column 'time' has other forms of times than ISO 8601" in capsys.readouterr().out


def test_an_import_ends_when_the_disk_is_full(tmp_path: Path) -> None:
    with RunDraft(str(tmp_path), RunDescription("full", "p", "csv", T0_S * 1000)) as draft:
        draft._training.error = OSError(errno.ENOSPC, "No space left on device")
        with pytest.raises(OSError, match="No space left"):
            draft.row(T0_S * 1000, 0, {"loss": 1})


def test_what_a_killed_import_left_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "case.csv"
    path.write_text("step,loss\n1,0.5\n")
    left = tmp_path / "data" / "runs" / ".import-mine-4194999"  # a number that no process has
    left.mkdir(parents=True)
    assert imported(path, tmp_path / "data", "--run", "mine") == ["mine"]


def test_gaps_repeated_steps_and_decimal_steps_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = 'step,"loss, train",acc,\n1,0.5,,\n2,nan,0.1,\n2,0.4,inf,\n1e3,-,0.3,\n2.5,0.3,0.4,'
    rows = rows_of(tmp_path, content)
    assert [step for step, _ in rows] == [1, 2, 2, 1000, 2.5]
    assert rows[0][1] == {"loss, train": 0.5}
    assert math.isnan(float(str(rows[1][1]["loss, train"])))
    assert rows[2][1] == {"loss, train": 0.4, "acc": math.inf}
    assert rows[3][1] == {"acc": 0.3}
    said = capsys.readouterr().out
    assert "1 rows with a step that an earlier row has, kept" in said
    assert "no column of times" in said


@pytest.mark.parametrize(
    ("cell", "seconds", "has_zone"),
    [
        ("2024-03-31T00:30:00Z", 1_711_845_000, True),
        ("2024-03-31T06:30:00+05:30", 1_711_846_800, True),
        ("2024-03-31 02:30:00", 1_711_852_200, False),
        ("2024-03-31T02:30:00.250+0000", 1_711_852_200.25, True),
        ("31.03.2024 02:30", 1_711_852_200, False),
        ("2024-03-31", 1_711_843_200, False),
        ("1711852200", 1_711_852_200, True),
        ("1711852200.5", 1_711_852_200.5, True),
        ("1711855800000", 1_711_855_800, True),
        ("1711855800000000", 1_711_855_800, True),
        ("1711855800000000000", 1_711_855_800, True),
    ],
)
def test_times_in_all_forms(cell: str, seconds: float, has_zone: bool) -> None:
    assert time_ms(cell) == (seconds * 1000, has_zone)


@pytest.mark.parametrize("cell", ["12.5", "3", "soon", "2024-02-30", "03/04/2024", ""])
def test_what_is_no_time(cell: str) -> None:
    assert time_ms(cell) is None


@pytest.mark.parametrize(
    ("cell", "mark", "value"),
    [
        ("1 234,5", ",", 1234.5),
        ("1\u202f234\u00a0567", ".", 1_234_567.0),
        ("1'234.5", ".", 1234.5),
        ("\N{MINUS SIGN}2.5", ".", -2.5),
        ("1,234,567.25", ".", 1_234_567.25),
        (".5", ".", 0.5),
        ("5.", ".", 5.0),
        ("1e-3", ".", 0.001),
        ("1,5e3", ",", 1500.0),
        ("12,34", ".", None),
        ("1.2.3", ".", None),
        ("0x10", ".", None),
        ("", ".", None),
        ("e5", ".", None),
    ],
)
def test_numbers_as_people_write_them(cell: str, mark: DecimalMark, value: float | None) -> None:
    assert number(cell, mark) == value


@pytest.mark.parametrize(
    ("cell", "mark"),
    [("0,123", ","), ("1,234", "?"), ("1.234", "?"), ("0.5", "."), ("12", None), ("a.b", None)],
)
def test_what_tells_the_decimal_mark(cell: str, mark: str | None) -> None:
    assert decimal_mark(cell) == mark


def test_a_file_without_numbers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(tmp_path, "step,timestamp,note\n1,2024-01-01T00:00:00+00:00,start\n", capsys)
    assert "no numeric column besides step and time" in said


def test_numbers_that_can_be_read_in_two_ways_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(tmp_path, "step;loss\n1;1,234\n2;5\n", capsys)
    assert "line 2: '1,234' can be thousands or decimals" in said
    said = refused(tmp_path, "step;loss\n1;0,5\n2;0.25\n", capsys)
    assert "line 3 has '0.25' with a decimal point, line 2 has '0,5' with a decimal comma" in said


def test_an_unquoted_decimal_comma_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(tmp_path, "step,loss\n1,0,5\n2,0,25\n", capsys)
    assert "line 2: 3 cells, but the header has 2" in said


def test_a_second_import_adds_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "logs" / "case.csv"
    path.parent.mkdir()
    path.write_text("step,loss\n1,0.5\n", encoding="utf-8")
    (run,) = imported(path.parent, tmp_path / "data")
    assert run.startswith("case-")
    assert imported(path.parent, tmp_path / "data") == [run]
    assert "1 runs exist already" in capsys.readouterr().out
    assert imported(path, tmp_path / "data", "--run", "mine") == [run, "mine"]


def test_our_own_export_comes_back(tmp_path: Path) -> None:
    content = "step,timestamp,loss\n1,1700000000,0.5\n2,1700000001,0.25\n"
    first = rows_of(tmp_path, content)
    (run,) = os.listdir(tmp_path / "data" / "runs")
    exported = tmp_path / "exported.csv"
    where = ["--dir", str(tmp_path / "data")]
    assert main(["export", run, "--history", "-o", str(exported), *where]) == 0
    (again,) = imported(exported, tmp_path / "other")
    rows = [
        (row.step, row.data["loss"], row.time_ms)
        for row in runvitals.open_run(again, str(tmp_path / "other")).history()
    ]
    assert rows == [(step, data["loss"], T0_S * 1000 + i * 1000) for i, (step, data) in enumerate(first)]


def test_a_dry_run_keeps_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "case.csv"
    path.write_text("step,loss\n1,0.5\n", encoding="utf-8")
    data = tmp_path / "data"
    assert main(["import", f"csv:{path}", "--dry-run", "--dir", str(data)]) == 0
    said = capsys.readouterr().out
    assert "1 log() rows" in said
    assert said.endswith("nothing was imported: this was a dry run\n")
    assert not data.exists()
    imported(path, data)
    before = sorted(data.rglob("*"))
    assert main(["import", f"csv:{path}", "--dry-run", "--dir", str(data)]) == 0
    assert "1 runs exist already" in capsys.readouterr().out
    assert sorted(data.rglob("*")) == before
