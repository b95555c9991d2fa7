"""Imports the runs of a repository of Aim."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from runvitals.model import media
from runvitals.readers.importers.aim.entries import AimDatabase
from runvitals.readers.importers.aim.repository import AimPoint, AimRepository, AimRun
from runvitals.readers.importers.report import ImportReport
from runvitals.readers.importers.run_draft import RunDescription, RunDraft, run_id_of
from runvitals.readers.importers.shapes import mapping

_SYSTEM: Final = "__system__"
_INTERVAL_S: Final = 10.0
_QUIET_S: Final = 600.0
_OURS: Final[Mapping[str, str]] = {
    "memory_percent": "memory_percent",
    "p_memory_percent": "proc.memory.percent",
}
_OF_GPU: Final[Mapping[str, str]] = {
    "gpu": "gpu",
    "gpu_memory_percent": "memoryAllocated",
    "gpu_power_watts": "powerWatts",
    "gpu_temp": "temp",
}
_FILES: Final = {"aim.image": media.IMAGE, "aim.audio": media.AUDIO}
_MAX_BINS: Final = 512
_TYPECODES: Final = {"int64": "q", "float64": "d", "float32": "f", "int32": "i"}


def import_aim(
    path: str, directory: str, project: str | None = None, run_id: str | None = None, team: str = ""
) -> Iterator[ImportReport]:
    """Import the runs of a repository. Runs that exist already are left alone.

    Args:
        path: the folder `.aim`, or the one that has it.
        directory: the data folder.
        project: default: the experiment.
        run_id: import only the run that has this id here.
        team: see `RunDescription`.

    Yields:
        The same report after each run.

    Raises:
        FileNotFoundError: there is none.
        OSError: aimrocks is not installed.
        ValueError: the SQLite file is not Aim's.
    """
    repository = AimRepository(path)
    report = ImportReport(total=len(repository.hashes))
    for hash in repository.hashes:
        id_here = run_id_of(hash)
        if run_id is not None and id_here != run_id:
            continue
        write = partial(_import_run, repository, hash, id_here, directory, project, team, report)
        report.attempt(id_here, directory, write, path)
        yield report
    yield report


def _import_run(
    repository: AimRepository,
    hash: str,
    id_here: str,
    directory: str,
    project: str | None,
    team: str,
    report: ImportReport,
) -> None:
    run = repository.run(hash)
    if run.ended_ms is None and time.time() - run.changed_s < _QUIET_S:
        report.leave_out("runs that may go on: something was written in the last ten minutes")
        return
    if not repository.has_series(hash):
        report.leave_out("runs that tracked nothing")
        return
    with repository.open_series(hash) as database:
        points = sorted(repository.points(database, hash), key=lambda point: point.time_s)
        if not points:
            report.leave_out("runs that tracked nothing")
            return
        started_ms = min(points[0].time_ms, run.created_ms or points[0].time_ms)
        about = _description(run, id_here, started_ms, project, team)
        with RunDraft(directory, about, _INTERVAL_S) as draft:
            _RunImport(run, database, draft, report).write(points)
            ended_ms = points[-1].time_ms if run.ended_ms is None else run.ended_ms
            draft.end("crashed" if run.ended_ms is None else "finished", ended_ms)
            draft.complete()
    report.add(id_here, about.project, draft, "" if run.ended_ms is not None else "; it was not closed")


def _description(
    run: AimRun, id_here: str, started_ms: int, project: str | None, team: str
) -> RunDescription:
    system = run.attributes.get("__system_params")
    arguments = system.get("arguments") if isinstance(system, dict) else None
    config: dict[str, Any] = {}
    for name, value in run.attributes.items():
        if name == "hparams" and isinstance(value, dict):
            config.update(value)
        elif not name.startswith("__"):
            config[name] = value
    return RunDescription(
        id_here,
        project or run.experiment or "aim",
        "aim",
        started_ms,
        run.name,
        notes=run.description,
        tags=run.tags,
        config=config,
        about={"command": [str(word) for word in arguments] if isinstance(arguments, list) else []},
        team=team,
    )


class _RunImport:
    """Writes what a run tracked."""

    def __init__(self, run: AimRun, database: AimDatabase, draft: RunDraft, report: ImportReport) -> None:
        self._run, self._database, self._draft, self._report = run, database, draft, report
        self._row: dict[str, Any] = {}
        self._step: float | None = None
        self._row_ms = 0

    def write(self, points: list[AimPoint]) -> None:
        """Write points in order of time: the numbers of one step that follow each other in one row."""
        for point in points:
            if isinstance(point.value, bool) or not isinstance(point.value, (int, float)):
                self._write_object(point)
            elif point.name.startswith(_SYSTEM) and (ours := _our_metric(point, self._context(point))):
                self._draft.sample(point.time_ms, {ours: float(point.value)})
            else:
                self._write_number(point)
        self._end_row()

    def _write_number(self, point: AimPoint) -> None:
        name = series_name(point.name.removeprefix(_SYSTEM), self._context(point))
        if point.step != self._step or name in self._row:
            self._end_row()
        self._step, self._row_ms = point.step, point.time_ms
        self._row[name] = point.value
        if point.epoch is not None:
            self._row["epoch"] = point.epoch

    def _end_row(self) -> None:
        if self._row:
            self._draft.row(self._row_ms, self._step, self._row)
        self._row = {}

    def _context(self, point: AimPoint) -> Mapping[str, Any]:
        context = self._run.contexts.get(point.context)
        return context if isinstance(context, Mapping) else {}

    def _write_object(self, point: AimPoint) -> None:
        value = mapping(point.value)
        several = [value[number] for number in sorted(n for n in value if isinstance(n, int))]
        items: list[dict[str, Any]] = []
        kinds: dict[str, None] = {}
        for number, element in enumerate(several) if several else [(None, value)]:
            typed_item = self._item(point, mapping(element), number)
            if typed_item is not None:
                kinds[typed_item[0]] = None
                items.append(typed_item[1])
        if items:
            name = series_name(point.name, self._context(point))
            self._draft.media(point.time_ms, point.step, name, next(iter(kinds)), items)

    def _item(
        self, point: AimPoint, value: Mapping[str, Any], number: int | None
    ) -> tuple[str, dict[str, Any]] | None:
        form = _type_of(value)
        content = self._content(point, number)
        if content is None:
            self._report.leave_out(f"values of the type {form}")
        elif form == "aim.log_line":
            self._draft.print(point.time_ms, content.decode("utf-8", "replace") + "\n")
        elif form == "aim.text":
            return media.TEXT, {**self._draft.store(content), "type": "text/plain"}
        elif form in _FILES:
            caption = {"caption": str(value["caption"])} if value.get("caption") else {}
            return _FILES[form], {**self._draft.store(content), **caption}
        elif form == "aim.distribution" and (histogram := _histogram(value, content)):
            return media.HISTOGRAM, {"value": histogram}
        else:
            self._report.leave_out(f"values of the type {form}")
        return None

    def _content(self, point: AimPoint, number: int | None) -> bytes | None:
        """Return the content of an object; the key of its first field leads to it."""
        prefix = point.key[: point.key.index(b"\xfeval\xfe\xfe") + 15]
        within = b"" if number is None else b"\xfe" + number.to_bytes(8, "big") + b"\xfe"
        return self._database.content(prefix + within + b"data\xfe")


def _type_of(value: Mapping[str, Any]) -> str:
    """Return the type of an object, by its fields: those of one in a list say nothing else."""
    if "bin_count" in value:
        return "aim.distribution"
    if "width" in value and "height" in value:
        return "aim.image"
    return str(value.get("type", "aim.text"))


def series_name(name: str, context: Mapping[str, Any]) -> str:
    """Return the name of a series here: a context of one entry before it, several with their names.

    Example:
        >>> series_name("loss", {"subset": "val"}), series_name("loss", {"subset": "val", "fold": 2})
        ('val/loss', 'subset=val,fold=2/loss')
    """
    if not context:
        return name
    if len(context) == 1:
        return f"{next(iter(context.values()))}/{name}"
    return f"{','.join(f'{key}={value}' for key, value in context.items())}/{name}"


def _our_metric(point: AimPoint, context: Mapping[str, Any]) -> str | None:
    """Return our key of a metric of the machine; None if we have none."""
    name = point.name.removeprefix(_SYSTEM)
    if name in _OF_GPU and isinstance(context.get("gpu"), int):
        return f"gpu.{context['gpu']}.{_OF_GPU[name]}"
    return _OURS.get(name)


def _histogram(value: Mapping[str, Any], content: bytes) -> dict[str, Any] | None:
    typecode, bins, ends = _TYPECODES.get(str(value.get("dtype"))), value.get("bin_count"), value.get("range")
    ends = [ends.get(0), ends.get(1)] if isinstance(ends, dict) else ends
    if (
        typecode is None
        or not isinstance(bins, int)
        or not 0 < bins <= _MAX_BINS
        or not isinstance(ends, list)
    ):
        return None
    counts = array(typecode, content).tolist() if len(content) == bins * array(typecode).itemsize else []
    if not counts or not all(isinstance(end, (int, float)) for end in ends):
        return None
    width = (ends[1] - ends[0]) / bins
    edges = [*(ends[0] + width * number for number in range(bins)), ends[1]]
    return {"counts": counts, "edges": edges, "count": sum(counts)}
