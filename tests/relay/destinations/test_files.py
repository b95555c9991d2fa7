"""Runs as files, read with csv, json, pyarrow and DuckDB: complete, and exactly once."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import ipc, parquet

from runvitals.relay.destinations.files import destination as files
from runvitals.relay.destinations.files.rows import NUMBER, TEXT, TableRow
from runvitals.relay.destinations.files.text_formats import CsvFormat
from runvitals.relay.engine import batch_reader
from runvitals.relay.engine.cursor import Cursor
from tests.relay.journals import HOST, RUN, Journal, Sender

EXTENSIONS = {"csv": "csv", "jsonl": "jsonl", "arrow": "arrows", "parquet": "parquet"}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "data")
    yield journal
    journal.monitor.close()
    journal.train.close()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def send(journal: Journal, out: Path, format: str) -> Sender:
    sender = Sender(journal.folder, f"files:{out}?format={format}")
    sender.send()
    sender.kill()
    return sender


def read(out: Path, table: str, format: str) -> list[dict[str, Any]]:
    """All rows of a table, in the order of the files' names; texts of CSV as they are."""
    rows: list[dict[str, Any]] = []
    for path in sorted((out / table).rglob(f"*.{EXTENSIONS[format]}")):
        if format == "csv":
            with path.open(newline="") as file:
                rows += csv.DictReader(file)
        elif format == "jsonl":
            rows += [json.loads(line) for line in path.read_text().splitlines()]
        elif format == "arrow":
            rows += ipc.open_stream(path.read_bytes()).read_all().to_pylist()
        else:
            rows += parquet.read_table(path, partitioning=None).to_pylist()
    return rows


def fill(journal: Journal) -> None:
    for second in range(3):
        slow = {"memory_percent": 50.0} if second == 1 else {}
        journal.sample(second, cpu=second + 0.5, **slow)
    journal.sample(3, cpu=float("nan"))
    journal.log(
        2, 7, loss=0.25, text='with "quotes",\nand lines', nested={"acc": 1}, host="mine", list=[1, 2]
    )
    journal.log(3, 8, loss=float("nan"))
    journal.event("marker")
    journal.end()


def test_file_paths(journal: Journal, out: Path) -> None:
    fill(journal)
    send(journal, out, "csv")
    (samples,) = (out / "samples").rglob("*.csv")
    date = time.strftime("%Y-%m-%d", time.gmtime(journal.t0 / 1000))
    assert samples.relative_to(out).as_posix() == (
        f"samples/project=digits/run=abc/date={date}/monitor.node1.1-000.csv"
    )


def test_csv(journal: Journal, out: Path) -> None:
    fill(journal)
    send(journal, out, "csv")
    samples = read(out, "samples", "csv")
    assert list(samples[0]) == ["time_ms", "time", "host", "cpu", "memory_percent"]
    assert [(row["cpu"], row["memory_percent"]) for row in samples] == [
        ("0.5", ""),
        ("1.5", "50.0"),
        ("2.5", ""),
        ("", ""),
    ]
    assert samples[0]["time_ms"] == str(journal.t0)
    first, second = read(out, "logs", "csv")
    assert (first["rank"], first["step"], first["loss"], first["nested.acc"]) == ("0", "7", "0.25", "1.0")
    assert (first["text"], first["host_"], first["list"]) == ('with "quotes",\nand lines', "mine", "[1,2]")
    assert second["loss"] == "NaN"
    notes = read(out, "notes", "jsonl")
    assert [(row["kind"], json.loads(row["note"])["t"]) for row in notes] == [
        ("event", journal.t0),
        ("lifecycle", journal.t0 + 9000),
    ]


def test_json_lines(journal: Journal, out: Path) -> None:
    fill(journal)
    send(journal, out, "jsonl")
    samples = read(out, "samples", "jsonl")
    assert [row["metrics"] for row in samples] == [
        {"cpu": 0.5},
        {"cpu": 1.5, "memory_percent": 50.0},
        {"cpu": 2.5},
        {"cpu": None},
    ]
    first, second = read(out, "logs", "jsonl")
    assert (first["rank"], first["step"], first["host"], first["data"]["host"]) == (0, 7, HOST, "mine")
    assert second["data"] == {"loss": "NaN"}


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_arrow_and_parquet(journal: Journal, out: Path, format: str) -> None:
    fill(journal)
    send(journal, out, format)
    samples = read(out, "samples", format)
    assert [(row["cpu"], row["memory_percent"]) for row in samples] == [
        (0.5, None),
        (1.5, 50.0),
        (2.5, None),
        (None, None),
    ]
    assert round(1000 * samples[0]["time"].timestamp()) == journal.t0
    first, second = read(out, "logs", format)
    assert (first["rank"], first["step"], first["text"]) == (0, 7.0, 'with "quotes",\nand lines')
    assert isnan(second["loss"])
    assert [row["kind"] for row in read(out, "notes", format)] == ["event", "lifecycle"]


def test_duckdb_reads_parquet_of_many_runs(journal: Journal, out: Path) -> None:
    fill(journal)
    journal.sample(4, **{"cpu": 4.5, "gpu.0.powerWatts": 300.0})
    send(journal, out, "parquet")
    rows = duckdb.sql(
        f'SELECT project, run, host, count(*), avg(cpu), max("gpu.0.powerWatts") FROM '
        f"read_parquet('{out}/samples/*/*/*/*.parquet', hive_partitioning=true, union_by_name=true) "
        f"GROUP BY ALL"
    ).fetchall()
    assert rows == [("digits", RUN, HOST, 5, 2.25, 300.0)]
    (kind,) = duckdb.sql(f"SELECT typeof(time) FROM '{out}/samples/*/*/*/*.parquet' LIMIT 1").fetchall()
    assert kind == ("TIMESTAMP WITH TIME ZONE",)


def test_duckdb_reads_csv_and_json_lines(journal: Journal, out: Path) -> None:
    fill(journal)
    for format, column in (("csv", "cpu"), ("jsonl", "metrics.cpu")):
        send(journal, out / format, format)
        rows = duckdb.sql(
            f"SELECT run, typeof(time), sum({column}) "
            f"FROM '{out}/{format}/samples/*/*/*/*.{format}' GROUP BY ALL"
        ).fetchall()
        assert rows == [(RUN, "TIMESTAMP WITH TIME ZONE" if format == "csv" else rows[0][1], 4.5)]


@pytest.mark.parametrize("format", EXTENSIONS)
def test_new_keys_and_types(journal: Journal, out: Path, format: str) -> None:
    sender = Sender(journal.folder, f"files:{out}?format={format}")
    for step, values in enumerate([{"a": 1.0}, {"a": 2.0, "b": 3.0}, {"a": "n/a"}, {"a": 4.0}]):
        journal.log(step, step, **values)
        sender.send()
    sender.kill()
    rows = [row.get("data", row) for row in read(out, "logs", format)]
    assert [str(row["a"]).removesuffix(".0") for row in rows] == ["1", "2", "n/a", "4"]
    assert [str(row["b"]) for row in rows if row.get("b")] == ["3.0"]


@pytest.mark.parametrize("format", EXTENSIONS)
def test_lost_position_causes_no_duplicates(journal: Journal, out: Path, format: str) -> None:
    fill(journal)
    sender = send(journal, out, format)
    before = read(out, "samples", format)
    Path(Cursor(journal.folder, sender.cursor.spec, HOST).path).unlink()
    send(journal, out, format)
    assert len(before) == 4
    assert str(read(out, "samples", format)) == str(before)
    assert len(read(out, "logs", format)) == 2


def test_new_file_per_day_and_when_full(journal: Journal, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1)
    sender = Sender(journal.folder, f"files:{out}?format=csv")
    for second in (0, 1, 86_400, -200_000):  # before the last one, the clock was set back
        journal.sample(second, cpu=float(second))
        sender.send()
    sender.kill()
    paths = sorted(path.relative_to(out / "samples/project=digits/run=abc") for path in out.rglob("*.csv"))
    assert len({path.parent for path in paths}) == 3
    assert len(paths) == 4


def test_removed_file_is_not_required(journal: Journal, out: Path) -> None:
    sender = Sender(journal.folder, f"files:{out}?format=csv")
    journal.sample(0, cpu=0.0)
    sender.send()
    next(out.rglob("*.csv")).unlink()
    journal.sample(1, cpu=1.0)
    sender.send()
    sender.kill()
    assert [row["cpu"] for row in read(out, "samples", "csv")] == ["1.0"]


@pytest.mark.parametrize("address", ["", "out?format=xls", "out?colour=red"])
def test_invalid_addresses(journal: Journal, address: str) -> None:
    sender = Sender(journal.folder, f"files:{address}")
    with pytest.raises(ValueError, match="expected files:FOLDER"):
        sender.send()
    sender.kill()


def test_csv_cells_round_trip() -> None:
    row = TableRow(1_700_000_000_123, {"host": "h"}, {"a": 0.1, "b": float("-inf"), "c": "1"})
    assert CsvFormat().rows("samples", {"a": NUMBER, "b": NUMBER, "c": TEXT}, [row]) == (
        b"1700000000123,2023-11-14T22:13:20.123Z,h,0.1,-inf,1\n"
    )


DELIVER = """
import sys
from runvitals.relay.engine import batch_reader
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import RunDelivery
from runvitals.relay.engine.destination_spec import DestinationSpec
batch_reader.MAX_BATCH_RECORDS = 3
cursor = Cursor(sys.argv[1], DestinationSpec(sys.argv[2]), "node1")
assert cursor.lock()
delivery = RunDelivery(cursor)
delivery.open()
print("begun", flush=True)
while delivery.step(0.0, flush=True):
    pass
"""


@pytest.mark.parametrize("format", EXTENSIONS)
def test_kill_9_causes_no_loss_or_duplicates(
    journal: Journal, out: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for second in range(300):
        journal.sample(second, cpu=float(second))
    spec = f"files:{out}?format={format}"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(["src", *filter(None, sys.path)])}
    codes = []
    for delay_s in (0.02, 0.07):
        words = [sys.executable, "-c", DELIVER, journal.folder, spec]
        with subprocess.Popen(words, env=environ, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay_s)
            process.send_signal(signal.SIGKILL)
        codes.append(process.returncode)
    assert -signal.SIGKILL in codes
    monkeypatch.setattr(batch_reader, "MAX_BATCH_RECORDS", 3)
    sender = send(journal, out, format)
    assert sender.cursor.rejection == ""
    rows = [row.get("metrics", row) for row in read(out, "samples", format)]
    assert [float(row["cpu"]) for row in rows] == [float(second) for second in range(300)]
