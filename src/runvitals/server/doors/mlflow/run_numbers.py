"""Finds the run that a message names, by its numbers."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import Request

from runvitals.server.access.actions import Action
from runvitals.server.access.requester import requester_of
from runvitals.server.doors.mlflow.errors import unknown_run
from runvitals.server.doors.mlflow.runs import Runs
from runvitals.server.service_parameters import access_of


class FoundRun(NamedTuple):
    """A run and its project."""

    run_id: int
    project_id: int


def find_run(request: Request, uid: str, action: Action) -> FoundRun:
    """The run with this id on which the requester may do an action. Reads the database.

    Raises:
        MlflowError: there is none.
        HTTPException: 401, 403 or 409.
    """
    access = access_of(request)
    number = Runs(access, requester_of(request)).number(uid, action)
    place = access.metadata_store.runs.place(number)
    if place is None:
        raise unknown_run(uid)
    return FoundRun(number, place.project_id)
