"""The MLflow run of a run that has none: found, or made."""

from __future__ import annotations

from typing import NamedTuple

from runvitals.relay.batch import Batch
from runvitals.relay.mlflow.store import FAILED, FINISHED, KILLED, NamedText, TrackingStore

RUN_TAG, PROJECT_TAG = "runvitals.run", "runvitals.project"
# Ours is called "default", theirs, which every server has, "Default".
_DEFAULT_PROJECT, _DEFAULT_EXPERIMENT = "default", "Default"
_STATUS = {"finished": FINISHED, "failed": FAILED, "crashed": FAILED, "stopped": KILLED}


class MlflowRun(NamedTuple):
    """The MLflow run that a run goes to; `joined`: it was there already."""

    run: str
    joined: bool


def find_or_create(store: TrackingStore, experiment: str, batch: Batch) -> MlflowRun:
    """The MLflow run that carries this run's id as a tag. Hosts of one run come to the same one: of two that
    are made at once, both keep the older and delete the younger.

    Args:
        experiment: its name; "": that of the run's project.
    """
    project = batch.run.project
    name = experiment or (_DEFAULT_EXPERIMENT if project == _DEFAULT_PROJECT else project)
    where = store.experiment(name)
    mark = NamedText(RUN_TAG, batch.run.id)
    there = store.runs_with(where, mark)
    if there:
        return MlflowRun(there[0], joined=True)
    tags = [mark, NamedText(PROJECT_TAG, project), NamedText("mlflow.source.type", "LOCAL")]
    made = store.make_run(where, batch.run.name, batch.writer.started_ms, tags)
    there = store.runs_with(where, mark)
    if there and there[0] != made:
        store.drop_run(made)
        return MlflowRun(there[0], joined=True)
    return MlflowRun(made, joined=False)


def status_of(state: str) -> str:
    """MLflow's word for how a run ended.

    >>> status_of("stopped")
    'KILLED'
    """
    return _STATUS.get(state, FAILED)
