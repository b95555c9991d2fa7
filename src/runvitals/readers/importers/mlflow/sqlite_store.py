"""MLflow's store in a SQLite file, which is opened for reading only."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator

from runvitals.readers.importers.mlflow.local_artifacts import local_artifacts
from runvitals.readers.importers.mlflow.run import MlflowArtifact, MlflowMetric, MlflowStoreRun
from runvitals.readers.importers.sources import open_sqlite

_ARTIFACT_FOLDERS = ("mlruns", "mlartifacts")
_RUNS = """
    SELECT r.run_uuid, e.name, r.name, r.status, r.start_time, r.end_time, r.artifact_uri
    FROM runs r JOIN experiments e ON e.experiment_id = r.experiment_id
    WHERE r.lifecycle_stage = 'active' AND e.lifecycle_stage = 'active' ORDER BY r.start_time, r.run_uuid
"""


class MlflowSqliteStore:
    """See `MlflowStore`.

    Args:
        path: the file.
        artifacts: a folder with artifacts, besides `mlruns` and `mlartifacts` beside the file.

    Raises:
        ValueError: it is not MLflow's.
        FileNotFoundError: there is no such file.
    """

    def __init__(self, path: str, artifacts: str | None = None) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        self._roots = [os.path.join(self._folder, name) for name in _ARTIFACT_FOLDERS]
        self._roots += [] if artifacts is None else [os.path.abspath(artifacts)]
        self._path = path
        self._database = open_sqlite(path, "MLflow", ("runs", "experiments", "params", "tags", "metrics"))
        try:
            (total,) = self._database.execute("SELECT count(*) FROM runs").fetchone()
            self._database.execute("SELECT 1 FROM experiments LIMIT 1")
        except sqlite3.Error as error:
            self._database.close()
            raise ValueError(f"{path} is not a SQLite file of MLflow: {error}") from None
        self._database.text_factory = _text
        self.total = int(total)
        self.deleted = self.unreadable = 0
        self.damaged: dict[str, str] = {}

    def runs(self) -> Iterator[MlflowStoreRun]:
        """Yield the runs that are not deleted, and of experiments that are not."""
        try:
            rows = self._database.execute(_RUNS).fetchall()
        except sqlite3.Error as error:
            raise ValueError(f"{self._path} is damaged: {error}") from None
        self.deleted, self.total = self.total - len(rows), len(rows)
        for run_id, experiment, name, status, started_ms, ended_ms, artifact_uri in rows:
            try:
                params, tags = self._pairs("params", run_id), self._pairs("tags", run_id)
            except sqlite3.Error as error:
                self.damaged[str(run_id)] = f"{self._path}: {error}"
                continue
            yield MlflowStoreRun(
                id=str(run_id),
                experiment=str(experiment),
                name=str(name or tags.get("mlflow.runName", "")),
                status=str(status),
                started_ms=_time(started_ms) or 0,
                ended_ms=_time(ended_ms),
                params=params,
                tags=tags,
                artifact_uri=str(artifact_uri or ""),
            )

    def _pairs(self, table: str, run_id: str) -> dict[str, str]:
        rows = self._database.execute(f"SELECT key, value FROM {table} WHERE run_uuid = ?", (run_id,))
        return {str(key): "" if value is None else str(value) for key, value in rows}

    def metrics(self, run: MlflowStoreRun) -> Iterator[MlflowMetric]:
        """Yield the values of all metrics of a run. Rows without a number are left out."""
        rows = self._database.execute(
            "SELECT key, value, timestamp, step, is_nan FROM metrics WHERE run_uuid = ?",
            (run.id,),
        )
        for key, value, time_ms, step, is_nan in rows:
            try:
                metric = MlflowMetric(
                    str(key), float("nan") if is_nan else float(value), int(time_ms), int(step or 0)
                )
            except (TypeError, ValueError, OverflowError):
                self.unreadable += 1
                continue
            yield metric

    def artifacts(self, run: MlflowStoreRun) -> Iterator[MlflowArtifact]:
        """Return the files of a run, if they are on this machine."""
        return local_artifacts(run.artifact_uri, self._folder, self._roots)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


def _time(value: object) -> int | None:
    return value if isinstance(value, int) else None
