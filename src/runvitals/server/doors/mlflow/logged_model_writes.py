"""Metrics of a run that belong to a logged model, too, and perhaps to a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import anyio.to_thread
from fastapi import Request

from runvitals.server.access.actions import Action
from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.experiments import experiments_of
from runvitals.server.doors.mlflow.limits import MAX_SHOWN
from runvitals.server.doors.mlflow.logged_models import LoggedModels
from runvitals.server.doors.mlflow.metric_columns import checked_metric
from runvitals.server.doors.mlflow.requests import SentMessage, parse_message
from runvitals.server.registry.storage.logged_model_metrics import ModelMetric
from runvitals.server.service_parameters import access_of
from runvitals.store.errors import LimitReached

_FIELD: Final = b'"model_id"'
_MAX_ID: Final = 200
_MAX_NAME: Final = 500
_MAX_DIGEST: Final = 36


def in_batch(body: bytes) -> list[ModelMetric]:
    """Return the metrics of logged models in the body of a `log-batch`, which is valid. Few bodies have one.

    Raises:
        MlflowError: 400.
    """
    if _FIELD not in body:
        return []
    sent = parse_message(body)
    run_uid = sent.text("run_id") or ""
    return in_messages(run_uid, sent.objects("metrics"))


def in_messages(run_uid: str, metrics: Sequence[Mapping[str, Any]]) -> list[ModelMetric]:
    """Return those of valid metrics that name a logged model.

    Raises:
        MlflowError: 400.
    """
    of_models = []
    for sent in metrics:
        message = SentMessage(dict(sent))
        model = message.text("model_id", most=_MAX_ID)
        if not model:
            continue
        key, value, timestamp, step = checked_metric(sent, "")
        name = message.text("dataset_name", most=_MAX_NAME) or ""
        digest = message.text("dataset_digest", most=_MAX_DIGEST) or ""
        if bool(name) != bool(digest):
            raise invalid(
                f"Metric '{key[:MAX_SHOWN]}': both dataset_name and dataset_digest must be provided if one is"
            )
        of_models.append(ModelMetric(model, run_uid, key, value, timestamp, step, name, digest))
    return of_models


async def check(request: Request, metrics: Sequence[ModelMetric]) -> None:
    """Check that the logged models exist, and that the requester may log to their experiments.

    Raises:
        MlflowError: there is no such model.
        HTTPException: 401 or 403.
    """

    def look() -> None:
        models = LoggedModels(access_of(request), experiments_of(request))
        for uid in {metric.model_uid for metric in metrics}:
            models.find(uid, Action.RUN_CREATE)

    if metrics:
        await anyio.to_thread.run_sync(look)


async def record(request: Request, metrics: Sequence[ModelMetric]) -> None:
    """Record metrics of logged models.

    Raises:
        MlflowError: a model would have too many.
    """
    if not metrics:
        return
    try:
        await anyio.to_thread.run_sync(access_of(request).metadata_store.logged_model_metrics.record, metrics)
    except LimitReached as error:
        raise invalid(str(error)) from None
