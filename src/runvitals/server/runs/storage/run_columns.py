"""Columns by which lists of runs are sorted and grouped, as SQL expressions on a row of `run`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, select

from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.runs import project, run
from runvitals.server.runs.storage.filter_conditions import COLUMNS
from runvitals.server.runs.storage.run_states import state_at

TEXTS = ("id", "name", "group", "job_type", "state", "project", "entity", "author")
"""Those whose values are texts."""
_PROJECT = select(project.c.name).where(project.c.id == run.c.project_id).correlate(run).scalar_subquery()
_ENTITY = (
    select(entity.c.name)
    .join(project, project.c.entity_id == entity.c.id)
    .where(project.c.id == run.c.project_id)
    .correlate(run)
    .scalar_subquery()
)
_AUTHOR_NAME = (
    select(entity.c.name)
    .join(user_account, user_account.c.entity_id == entity.c.id)
    .where(user_account.c.id == run.c.author_id, user_account.c.deleted_ms.is_(None))
    .correlate(run)
    .scalar_subquery()
)
AUTHOR = func.coalesce(_AUTHOR_NAME, "")
"""The name of a run's author, as an SQL expression on its row; "" without one, and for a deleted user."""


def sorted_columns(now_ms: int) -> dict[str, ColumnElement[Any]]:
    """Return the columns that runs can be sorted by, by name."""
    derived = {
        "state": state_at(now_ms),
        "project": _PROJECT,
        "entity": func.coalesce(_ENTITY, ""),
        "author": AUTHOR,
    }
    return {**COLUMNS, **derived}
