"""The repository of Aim: a folder `.aim` with two databases for each run, and a SQLite file about all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final

from runvitals.readers.importers.aim.entries import AimDatabase, plain, put, value_of
from runvitals.readers.importers.csv_files.cells import time_ms
from runvitals.readers.importers.shapes import mapping
from runvitals.readers.importers.sources import open_sqlite

_FIELDS: Final = ("val", "step", "epoch", "time")
_ABOUT: Final = ("attrs", "contexts", "end_time")


@dataclass(slots=True)
class AimRun:
    """What the repository says about a run.

    Args:
        created_ms: UTC; None if nothing is known.
        ended_ms: None if it was not closed.
        changed_s: when its files were last written.
        attributes: by `run["name"] = …`.
        contexts: by their numbers.
    """

    hash: str
    name: str = ""
    description: str = ""
    experiment: str = ""
    tags: list[str] = field(default_factory=list)
    created_ms: int | None = None
    ended_ms: int | None = None
    changed_s: float = 0.0
    attributes: dict[str, Any] = field(default_factory=dict)
    contexts: dict[Any, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(slots=True)
class AimPoint:
    """What was tracked at once.

    Args:
        value: a number, or a tree of an object's fields.
        key: of the entry with the value, to which contents belong.
    """

    context: Any
    name: str
    step: float | None
    epoch: float | None
    time_s: float
    value: Any
    key: bytes

    @property
    def time_ms(self) -> int:
        """When it was tracked, ms UTC."""
        return round(self.time_s * 1000)


class AimRepository:
    """The runs of a repository.

    Args:
        path: the folder `.aim`, or the one that has it.

    Raises:
        FileNotFoundError: there is none.
        ValueError: its SQLite file is not Aim's.
    """

    def __init__(self, path: str) -> None:
        inner = os.path.join(path, ".aim")
        self._folder = inner if os.path.isdir(inner) else path
        chunks = os.path.join(self._folder, "meta", "chunks")
        if not os.path.isdir(chunks):
            raise FileNotFoundError(f"there is no repository of Aim (a folder .aim) in {path}")
        self._about = self._read_about()
        self.hashes = sorted(name for name in os.listdir(chunks) if not name.startswith("."))

    def run(self, hash: str) -> AimRun:
        """Return what is known of a run.

        Raises:
            OSError: its database cannot be read.
        """
        run = self._about.get(hash) or AimRun(hash)
        tree: dict[Any, Any] = {}
        with self._open("meta", hash) as database:
            for path, _, stored in database.entries():
                if path[:3] == ("meta", "chunks", hash) and len(path) > 3 and path[3] in _ABOUT:
                    put(tree, path[3:], _value(stored))
        ended_s = tree.get("end_time")
        run.ended_ms = round(ended_s * 1000) if isinstance(ended_s, float) else None
        run.attributes = {str(name): plain(value) for name, value in mapping(tree.get("attrs")).items()}
        run.contexts = dict(mapping(tree.get("contexts")))
        run.changed_s = max(
            os.stat(os.path.join(folder, name)).st_mtime
            for folder in (self._folder_of("meta", hash), self._folder_of("seqs", hash))
            if os.path.isdir(folder)
            for name in (".", *os.listdir(folder))
        )
        return run

    def points(self, database: AimDatabase, hash: str) -> Iterator[AimPoint]:
        """Yield what a run tracked, by context and name."""
        series: dict[tuple[Any, ...], dict[str, dict[Any, Any]]] = {}
        current: tuple[Any, ...] | None = None
        for path, key, stored in database.entries():
            start = 1 if path[1:2] == ("v2",) else 0
            if path[0] != "seqs" or path[start + 1 : start + 3] != ("chunks", hash) or len(path) < start + 7:
                continue
            context, name, kind, number, *within = path[start + 3 :]
            if kind not in _FIELDS:
                continue
            if current != (start, context, name):
                yield from _points(series)
                series, current = {}, (start, context, name)
            fields = series.setdefault((context, name, start), {}).setdefault(str(kind), {})
            if within:
                tree = fields.setdefault(number, [{}, key])[0]
                if isinstance(tree, dict):
                    put(tree, tuple(within), _value(stored))
            else:
                fields[number] = [_value(stored), key]
        yield from _points(series)

    def open_series(self, hash: str) -> AimDatabase:
        """Open the database of what a run tracked."""
        return self._open("seqs", hash)

    def has_series(self, hash: str) -> bool:
        """Return whether a run tracked something."""
        return os.path.isdir(self._folder_of("seqs", hash))

    def _folder_of(self, part: str, hash: str) -> str:
        return os.path.join(self._folder, part, "chunks", hash)

    def _open(self, part: str, hash: str) -> AimDatabase:
        return AimDatabase(self._folder_of(part, hash))

    def _read_about(self) -> dict[str, AimRun]:
        path = os.path.join(self._folder, "run_metadata.sqlite")
        if not os.path.isfile(path):
            return {}
        try:
            with closing(open_sqlite(path, "Aim", ("run", "experiment", "run_tag", "tag"))) as database:
                database.text_factory = lambda content: content.decode("utf-8", "replace")
                rows = database.execute(
                    "SELECT run.id, hash, run.name, run.description, experiment.name, run.created_at "
                    "FROM run LEFT JOIN experiment ON experiment.id = run.experiment_id"
                ).fetchall()
                tags = database.execute(
                    "SELECT run_id, tag.name FROM run_tag JOIN tag ON tag.id = run_tag.tag_id ORDER BY tag.id"
                ).fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{path} is not Aim's: {error}") from error
        about = {}
        for number, hash, name, description, experiment, created in rows:
            moment = time_ms(str(created))
            about[str(hash)] = AimRun(
                str(hash),
                str(name or ""),
                str(description or ""),
                str(experiment or ""),
                [str(tag) for run, tag in tags if run == number],
                None if moment is None else int(moment[0]),
            )
        return about


def _value(stored: bytes) -> Any:
    try:
        return value_of(bytes(stored))
    except ValueError:
        return None


def _points(series: Mapping[tuple[Any, ...], Mapping[str, Mapping[Any, Any]]]) -> Iterator[AimPoint]:
    for (context, name, version), fields in series.items():
        for number, (value, key) in fields.get("val", {}).items():
            step, epoch, moment_s = (fields.get(field, {}).get(number, (None,))[0] for field in _FIELDS[1:])
            if not version and step is None:
                step = number  # of objects, the number is the step
            if isinstance(moment_s, (int, float)):
                yield AimPoint(context, str(name), step, epoch, float(moment_s), value, key)
