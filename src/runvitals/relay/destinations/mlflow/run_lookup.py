"""Finds or creates the MLflow run that a run is delivered to."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.relay.batch import Batch
from runvitals.relay.destinations.mlflow.tracking_store import (
    FAILED,
    FINISHED,
    KILLED,
    NamedText,
    TrackingStore,
)

RUN_TAG, PROJECT_TAG = "runvitals.run", "runvitals.project"
# Our default project is called "default"; the experiment that every MLflow server has is called "Default".
_DEFAULT_PROJECT, _DEFAULT_EXPERIMENT = "default", "Default"
_STATUS = {"finished": FINISHED, "failed": FAILED, "crashed": FAILED, "stopped": KILLED}


class TargetRun(NamedTuple):
    """The MLflow run of a run; `joined`: it existed before."""

    run: str
    joined: bool


def find_or_create(store: TrackingStore, experiment: str, batch: Batch) -> TargetRun:
    """Find the MLflow run tagged with this run's id, or create it.

    All hosts of a run use the same one: if two are created at the same time, both hosts keep the older one
    and delete the younger.

    Args:
        experiment: name of the experiment; "": the run's project.
    """
    project = batch.run.project
    name = experiment or (_DEFAULT_EXPERIMENT if project == _DEFAULT_PROJECT else project)
    experiment_id = store.experiment(name)
    run_tag = NamedText(RUN_TAG, batch.run.id)
    existing = store.runs_with(experiment_id, run_tag)
    if existing:
        return TargetRun(existing[0], joined=True)
    tags = [run_tag, NamedText(PROJECT_TAG, project), NamedText("mlflow.source.type", "LOCAL")]
    created = store.make_run(experiment_id, batch.run.name, batch.writer.started_ms, tags)
    existing = store.runs_with(experiment_id, run_tag)
    if existing and existing[0] != created:
        store.drop_run(created)
        return TargetRun(existing[0], joined=True)
    return TargetRun(created, joined=False)


def status_of(state: str) -> str:
    """Return the MLflow status for the state of a run.

    >>> status_of("stopped")
    'KILLED'
    """
    return _STATUS.get(state, FAILED)
