"""Labelled runs as journals, for what reads them: the command, the page, a server."""

from __future__ import annotations

import math
from pathlib import Path

from tests.findings.scenarios.course import START_MS, Course
from tests.readers.journals.journals import Monitor, Trainer


def write_journal(course: Course, directory: Path, run_id: str, shift_ms: int = 0) -> None:
    """Write a course as the journals of its monitors and of rank 0.

    Args:
        shift_ms: by how much it is later than `START_MS`.
    """
    ended = course.state != "running"
    end_ms = START_MS + shift_ms + int(course.minutes * 60_000)
    for host in course.samples():
        monitor = Monitor(
            directory, run_id, host.name, START_MS + shift_ms, host.interval_s or course.interval_s
        )
        monitor.info(START_MS + shift_ms, machine=host.machine)
        for local_rank, rank in host.ranks.items():
            monitor.lifecycle(
                START_MS + shift_ms,
                "attach",
                pid=4000 + local_rank,
                rank=rank,
                local_rank=local_rank,
                world_size=course.device_count * course.host_count,
            )
        times = max((times for times, _ in host.series.values()), key=len)
        columns = {key: values.tolist() for key, (_, values) in host.series.items()}
        for row, time_ms in enumerate(times.tolist()):
            sample = {key: values[row] for key, values in columns.items() if not math.isnan(values[row])}
            monitor.sample(time_ms + shift_ms, sample)
        if ended:
            monitor.end(end_ms, course.state, exit_code=0 if course.state == "finished" else None)
        else:
            monitor.close()
    trainer = Trainer(directory, run_id, "node0", rank=0, start_ms=START_MS + shift_ms)
    logged = course.columns()
    for mark in course.marks:
        trainer.mark(mark.time_ms + shift_ms, mark.text)
    for row, at_s in enumerate(course.steps_s.tolist()):
        data = {
            name: float(column.values[row]) for name, column in logged.items() if row < len(column.values)
        }
        trainer.log(START_MS + shift_ms + int(at_s * 1000), row, **data)
    trainer.close()
