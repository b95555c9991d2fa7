"""Runs as MLflow's clients see them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple

from fastapi import Depends, Request

from runvitals.model.errors import UnknownRun
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.artifacts.storage.run_lineage import NOTHING, Lineage
from runvitals.server.doors.mlflow.errors import PERMISSION_DENIED, MlflowError, invalid, unknown_run
from runvitals.server.doors.mlflow.experiments import ACTIVE, DELETED, Experiments, tags_json
from runvitals.server.doors.mlflow.metric_history import HistoryPoint
from runvitals.server.doors.mlflow.params import params_of
from runvitals.server.doors.mlflow.run_sessions import SECTION, TAGS
from runvitals.server.doors.mlflow.storage.experiments import StoredExperiment
from runvitals.server.http.immediate import immediate
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.service_parameters import access_of

STATUSES: Final = ("RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")
STATUS_NUMBERS: Final = {"1": "RUNNING", "2": "SCHEDULED", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_OF_STATE: Final = {
    "running": "RUNNING",
    "finished": "FINISHED",
    "failed": "FAILED",
    "crashed": "FAILED",
    "lost": "FAILED",
    "stopped": "KILLED",
}
NAME_TAG: Final = "mlflow.runName"
NOTE_TAG: Final = "mlflow.note.content"
_SECTIONS: Final = ("run", "config", SECTION, TAGS)
_ACTIVE_STATUSES: Final = ("RUNNING", "SCHEDULED")


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run with its parameters and tags.

    Args:
        experiment: its experiment, as its clients know it.
        lineage: what it used and made.
    """

    row: RunRow
    experiment: StoredExperiment
    experiment_id: str
    facts: Mapping[str, Any]
    params: Mapping[str, str]
    tags: Mapping[str, str]
    lineage: Lineage = NOTHING

    @property
    def status(self) -> str:
        """The status that the client set; for other runs, that of our state."""
        status = self.facts.get("status")
        return status if isinstance(status, str) else _OF_STATE[self.row.state]

    @property
    def end_time(self) -> int | None:
        """The end that the client set, also of a run that goes on, or when our run ended, ms UTC; or None."""
        end_time = self.facts.get("end_time")
        if isinstance(end_time, int):
            return end_time
        return None if self.status in _ACTIVE_STATUSES else self.row.ended_ms

    @property
    def start_time(self) -> int:
        """The start that the client set, or when our run started, ms UTC."""
        start_time = self.facts.get("start_time")
        return start_time if isinstance(start_time, int) else self.row.started_ms

    @property
    def user_id(self) -> str:
        """The user whom the client named, or the run's author; empty if nobody is known."""
        author = self.row.author.name if self.row.author is not None else None
        return str(self.facts.get("user_id") or author or "")

    @property
    def artifact_uri(self) -> str:
        """Where clients store the artifacts of the run."""
        return f"{self.experiment.artifact_root(self.experiment_id)}/{self.row.uid}/artifacts"

    def attribute(self, name: str) -> str | int | None:
        """Return an attribute of the search language."""
        value = {"run_id": self.row.uid, "run_name": self.row.name}.get(name)
        if value is not None:
            return value
        attribute_value: str | int | None = getattr(self, name)
        return attribute_value

    def info_json(self) -> dict[str, Any]:
        """Return MLflow's `RunInfo`."""
        info: dict[str, Any] = {
            "run_id": self.row.uid,
            "run_uuid": self.row.uid,
            "experiment_id": self.experiment_id,
            "run_name": self.row.name,
            "user_id": self.user_id,
            "status": self.status,
            "start_time": self.start_time,
            "artifact_uri": self.artifact_uri,
            "lifecycle_stage": ACTIVE if self.row.deleted_ms is None else DELETED,
        }
        if self.end_time is not None:
            info["end_time"] = self.end_time
        return info

    def as_json(self, metrics: Iterable[HistoryPoint]) -> dict[str, Any]:
        """Return the run as MLflow's clients read it."""
        return {
            "info": self.info_json(),
            "data": {
                "metrics": [point.as_json() for point in metrics],
                "params": tags_json(self.params.items()),
                "tags": tags_json(self.tags.items()),
            },
            "inputs": {
                "dataset_inputs": self.lineage.datasets,
                "model_inputs": self.lineage.models,
            },
            "outputs": {"model_outputs": self.lineage.outputs},
        }


class Runs:
    """The runs of one requester. Reads the database: use it in a thread."""

    def __init__(self, access: AccessControl, requester: Requester) -> None:
        self._access = access
        self._requester = requester
        self._store = access.metadata_store
        self.experiments = Experiments(access, requester)
        self._stored_experiments: dict[int, StoredExperiment] = {}

    def number(self, run_id: str, action: Action = Action.RUN_READ) -> int:
        """Return the integer id of a run, also of one in the trash, on which the requester may do an action.

        Raises:
            MlflowError: there is none.
            HTTPException: 401, 403 or 409.
        """
        if self.experiments.is_operator:
            row = self._store.runs.find(run_id, self._access.clock())
            if row is None:
                raise unknown_run(run_id)
            return row.id
        principal = self._requester.principal
        find = self._access.directory.find_run
        if action is Action.RUN_CREATE:  # a key that may only send cannot read what it sends to
            find = self._access.directory.find_sent_run
        try:
            item = find(principal, run_id, None)
        except UnknownRun:
            if action is Action.RUN_CREATE:
                number = self.number(run_id)  # raises unless it can be read
                row = self._store.runs.get([number], self._access.clock()).get(number)
                if row is not None and row.deleted_ms is not None:
                    raise not_active(run_id) from None
                raise MlflowError(PERMISSION_DENIED, f"you may not write to the run {run_id!r}") from None
            raise unknown_run(run_id) from None
        self._access.require(
            self._requester, action, item, f"run {run_id!r}", changes=action is not Action.RUN_READ
        )
        if action is Action.RUN_READ:
            self._store.read_days.note_run(item.id, self._access.clock())
        return item.id

    def find(self, run_id: str, action: Action = Action.RUN_READ) -> TrackedRun:
        """Return a run, as `number` finds it."""
        runs = self.of_rows(
            self._store.runs.get([self.number(run_id, action)], self._access.clock()).values()
        )
        if not runs:
            raise unknown_run(run_id)
        return runs[0]

    def find_own(self, run_id: str) -> TrackedRun:
        """Return a run that the requester has just written to, also with a key that may only send."""
        return self.find(run_id, Action.RUN_CREATE)

    def of_rows(self, rows: Iterable[RunRow]) -> list[TrackedRun]:
        """Return runs with their parameters and tags, in the order given."""
        listed = list(rows)
        missing = {row.project_id for row in listed} - self._stored_experiments.keys()
        if missing:
            self._stored_experiments |= {
                stored.id: stored for stored in self._store.mlflow_experiments.of_projects(missing)
            }
        sections = self._store.sections.read([row.id for row in listed], _SECTIONS)
        lineages = self._store.run_lineage.of_runs([row.id for row in listed])
        runs = []
        for row in listed:
            experiment = self._stored_experiments[row.project_id]
            shared = sections[row.id].shared
            runs.append(
                TrackedRun(
                    row,
                    experiment,
                    self.experiments.id_of(experiment),
                    shared.get(SECTION, {}),
                    params_of(shared.get("config", {})),
                    _tags(row, shared),
                    lineages.get(row.id, NOTHING),
                )
            )
        return runs

    def stage(self, run_id: str) -> tuple[int, bool]:
        """Return the number of a run that the requester may delete, and whether it is in the trash.

        Raises:
            MlflowError: there is no such run.
        """
        number = self.number(run_id, Action.RUN_DELETE)
        row = self._store.runs.get([number], self._access.clock()).get(number)
        if row is None:
            raise unknown_run(run_id)
        return number, row.deleted_ms is not None


def not_active(run_id: str) -> MlflowError:
    """400: the run is in the trash."""
    return invalid(f"The run {run_id[:100]} must be in the 'active' state. Current state is deleted.")


def _tags(row: RunRow, shared: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the tags that clients set, with our name and notes as MLflow's tags."""
    tags = {name: str(value) for name, value in shared.get(TAGS, {}).items()}
    tags[NAME_TAG] = row.name
    notes = shared.get("run", {}).get("notes")
    if notes:
        tags[NOTE_TAG] = str(notes)
    else:
        tags.pop(NOTE_TAG, None)
    for tag in row.tags:
        tags.setdefault(tag, "")
    return tags


@immediate
def runs_of(request: Request) -> Runs:
    """Return the runs of the requester."""
    return Runs(access_of(request), requester_of(request))


TheRuns = Annotated[Runs, Depends(runs_of)]


class FoundRun(NamedTuple):
    """A run and its project."""

    run_id: int
    project_id: int


def find_run(request: Request, uid: str, action: Action) -> FoundRun:
    """Return the run with this id on which the requester may do an action. Reads the database.

    Raises:
        MlflowError: there is none.
        HTTPException: 401, 403 or 409.
    """
    access = access_of(request)
    number = runs_of(request).number(uid, action)
    run = access.metadata_store.runs.place(number)
    if run is None:
        raise unknown_run(uid)
    return FoundRun(number, run.project_id)
