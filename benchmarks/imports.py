"""Cost of imports: CPU time per row of a large CSV file and of a large export of Neptune.

    scripts/bench imports [--rows 1000000]

The CSV file has a step, a time and three random numbers in each row; the export of Neptune has the same, as
three series. Beside it what `pandas.read_csv` takes for the file, and what wandb's client takes to log a
twentieth of the rows offline. CPU is of each program with those that it started, user and system.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

_COLUMNS = ("loss", "accuracy", "learning_rate")
_START = datetime(2025, 12, 1, tzinfo=timezone.utc)
_BATCH_ROWS = 20_000
_PANDAS = "import pandas, sys; pandas.read_csv(sys.argv[1])"
_WANDB = """
import csv, itertools, sys, wandb
with wandb.init(project="p", mode="offline", dir=sys.argv[2]) as run, open(sys.argv[1]) as file:
    for row in itertools.islice(csv.DictReader(file), int(sys.argv[3])):
        run.log({name: float(cell) for name, cell in row.items() if name != "step"}, step=int(row["step"]))
"""


def write_csv(path: Path, rows: int) -> None:
    """Write the CSV file."""
    with path.open("w") as file:
        file.write(f"step,timestamp,{','.join(_COLUMNS)}\n")
        for step in range(rows):
            values = ",".join(repr(random.random()) for _ in _COLUMNS)
            file.write(f"{step},{_START.timestamp() + step * 0.5},{values}\n")


def write_neptune(path: Path, rows: int) -> None:
    """Write the export of Neptune."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema(
        {
            **dict.fromkeys(("project_id", "run_id", "attribute_path", "attribute_type"), pa.string()),
            "step": pa.decimal128(18, 6),
            "timestamp": pa.timestamp("ms", "UTC"),
            "float_value": pa.float64(),
        }
    )
    with parquet.ParquetWriter(path, schema) as writer:
        for name in _COLUMNS:
            for first in range(0, rows, _BATCH_ROWS):
                steps = range(first, min(rows, first + _BATCH_ROWS))
                texts = (["workspace/project"], ["RUN-1"], [name], ["float_series"])
                times = [_START + timedelta(seconds=step * 0.5) for step in steps]
                columns = [*(text * len(steps) for text in texts), [Decimal(step) for step in steps], times]
                values = [random.random() for _ in steps]
                writer.write_table(pa.table([*columns, values], schema=schema))


def measure(name: str, rows: int, command: list[str]) -> None:
    """Run a program, and print a row."""
    with tempfile.TemporaryFile() as output:
        program = subprocess.Popen([sys.executable, *command], stdout=output, stderr=output)
        _, status, used = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        if program.returncode:
            output.seek(0)
            raise SystemExit(output.read().decode()[-3000:])
    seconds = used.ru_utime + used.ru_stime
    memory_mb = used.ru_maxrss * 1024 / 1e6
    print(f"| {name} | {rows:,} | {seconds:.1f} | {seconds / rows * 1e6:.1f} | {memory_mb:.0f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows: int = parser.parse_args().rows
    print("| | rows | CPU, s | CPU per row, µs | memory, MB |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        table, export = Path(folder, "table.csv"), Path(folder, "export.parquet")
        write_csv(table, rows)
        write_neptune(export, rows)
        for name, source in (("CSV", f"csv:{table}"), ("Neptune", f"neptune:{export}")):
            command = ["-m", "runvitals", "import", source, "--dir", f"{folder}/{name}"]
            measure(f"`runvitals import`, {name}", rows, command)
        measure("`pandas.read_csv`", rows, ["-c", _PANDAS, str(table)])
        measure("wandb offline", rows // 20, ["-c", _WANDB, str(table), folder, str(rows // 20)])


if __name__ == "__main__":
    main()
