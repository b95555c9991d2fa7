"""MLflow's store in a folder, `mlruns`: a folder for each experiment, and in it one for each run."""

from __future__ import annotations

import os
from collections.abc import Iterator

from runvitals.readers.importers.mlflow.local_artifacts import local_artifacts
from runvitals.readers.importers.mlflow.run import MlflowArtifact, MlflowMetric, MlflowStoreRun
from runvitals.readers.importers.sources import checked_file, text_lines

_STATUSES = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_DESCRIPTION = "meta.yaml"
_TEXT_CHARACTERS = 1 << 20
_LINE_CHARACTERS = 1000


class MlflowFileStore:
    """See `MlflowStore`.

    Args:
        folder: the folder `mlruns`.
        artifacts: a folder with artifacts, besides `folder`.

    Raises:
        ValueError: it is not MLflow's.
    """

    def __init__(self, folder: str, artifacts: str | None = None) -> None:
        self._folder = folder
        self._roots = [folder] if artifacts is None else [folder, os.path.abspath(artifacts)]
        self.total = self.deleted = self.unreadable = 0
        self.damaged: dict[str, str] = {}
        self._run_folders: dict[str, str] = {}
        if not any(os.path.isfile(os.path.join(path, _DESCRIPTION)) for path in _folders(folder)):
            raise ValueError(f"{folder} is not a folder of MLflow: no folder in it has a {_DESCRIPTION}")

    def runs(self) -> Iterator[MlflowStoreRun]:
        """Yield the runs that are not deleted, and of experiments that are not."""
        self.deleted = sum(
            os.path.isfile(os.path.join(run, _DESCRIPTION))
            for experiment in _folders(os.path.join(self._folder, ".trash"))
            for run in _folders(experiment)
        )
        self.total = sum(len(_folders(path)) for path in _folders(self._folder))
        for path in _folders(self._folder):
            experiment = _read_description(path)
            if experiment is None:
                continue
            for folder in _folders(path):
                about = _read_description(folder)
                if about is None or ("run_id" not in about and "run_uuid" not in about):
                    continue
                if "deleted" in (about.get("lifecycle_stage"), experiment.get("lifecycle_stage")):
                    self.deleted += 1
                    continue
                try:
                    run = _run(folder, about, experiment.get("name") or os.path.basename(path))
                except OSError as error:
                    self.damaged[os.path.relpath(folder, self._folder)] = str(error)
                    continue
                self._run_folders[run.id] = folder
                yield run

    def metrics(self, run: MlflowStoreRun) -> Iterator[MlflowMetric]:
        """Yield the values of all metrics of a run.

        A line that is not a value, such as a cut one, is left out.
        """
        for key, path in _files(os.path.join(self._run_folders[run.id], "metrics")):
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in text_lines(file, _LINE_CHARACTERS):
                    metric = _metric(key, line)
                    if metric is not None:
                        yield metric
                    else:
                        self.unreadable += 1

    def artifacts(self, run: MlflowStoreRun) -> Iterator[MlflowArtifact]:
        """Return the files of a run, if they are on this machine."""
        inside = os.path.join(self._run_folders[run.id], "artifacts")  # where they are if the store was moved
        if any(_files(inside)):
            return local_artifacts(inside, self._folder, self._roots)
        return local_artifacts(run.artifact_uri, self._folder, self._roots)

    def close(self) -> None:
        """Nothing is kept open."""


def _run(folder: str, about: dict[str, str], experiment: str) -> MlflowStoreRun:
    tags = {key: _text(path) for key, path in _files(os.path.join(folder, "tags"))}
    status = about.get("status", "")
    return MlflowStoreRun(
        id=about.get("run_id") or about["run_uuid"],
        experiment=experiment,
        name=about.get("run_name") or tags.get("mlflow.runName", ""),
        status=_STATUSES.get(status, status),
        started_ms=_number(about.get("start_time")) or 0,
        ended_ms=_number(about.get("end_time")),
        params={key: _text(path) for key, path in _files(os.path.join(folder, "params"))},
        tags=tags,
        artifact_uri=about.get("artifact_uri", ""),
    )


def _folders(path: str) -> list[str]:
    """Return the folders in a folder, without hidden ones and links; empty if there is none."""
    try:
        with os.scandir(path) as entries:
            folders = [
                entry
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith(".")
            ]
            return sorted(entry.path for entry in folders)
    except OSError:
        return []


def _files(root: str) -> Iterator[tuple[str, str]]:
    """Yield the names, relative to a folder, and paths of the files in it, without symbolic links."""
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            yield os.path.relpath(path, root).replace(os.sep, "/"), path


def _text(path: str) -> str:
    with open(checked_file(path), encoding="utf-8", errors="replace") as file:
        return file.read(_TEXT_CHARACTERS)


def _read_description(folder: str) -> dict[str, str] | None:
    """Return the entries of a `meta.yaml`, which are texts and numbers on one level.

    None if there is none.
    """
    try:
        content = _text(os.path.join(folder, _DESCRIPTION))
    except (OSError, ValueError):
        return None
    fields: dict[str, str] = {}
    for line in content.splitlines():
        name, colon, value = line.partition(":")
        if colon and name and not name[0].isspace():
            fields[name.strip()] = _unquote(value.strip())
    return fields


def _unquote(value: str) -> str:
    """Return a scalar of YAML."""
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    return "" if value in ("null", "~") else value


def _number(text: str | None) -> int | None:
    return int(text) if text and text.removeprefix("-").isdecimal() and len(text) < 20 else None


def _metric(key: str, line: str) -> MlflowMetric | None:
    """Return a line of a metric's file: time, value, and since MLflow 1 the step."""
    parts = line.split()
    try:
        return MlflowMetric(key, float(parts[1]), int(parts[0]), int(parts[2]) if len(parts) > 2 else 0)
    except (ValueError, IndexError):
        return None
