"""Runs whose texts match a regular expression.

The texts are read and matched here, because SQLite has no regular expressions and PostgreSQL's take
exponential time for some. Takes 1 µs for a text, and about 1 µs to read it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, Select, func, select, true

from runvitals.base import deadline
from runvitals.base.regular_expressions import finder
from runvitals.model.fields import TEXT
from runvitals.model.filter import Label
from runvitals.server.database.database import among
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.findings import finding, judgement
from runvitals.server.database.tables.runs import (
    device,
    project,
    run,
    run_device,
    run_field,
    run_note,
    run_tag,
    writer,
)
from runvitals.server.database.tables.sweeps import sweep, sweep_run
from runvitals.server.runs.storage.filter_conditions import Condition

_ROWS = 1000
_USER = (
    select(run.c.id, entity.c.name)
    .join(user_account, user_account.c.id == run.c.author_id)
    .join(entity, entity.c.id == user_account.c.entity_id)
    .where(user_account.c.deleted_ms.is_(None))
)
_DEVICE = (
    select(run_device.c.run_id, device.c.identity)
    .join(device, device.c.id == run_device.c.device_id)
    .where(func.coalesce(run_device.c.used, true()))
)
_SWEEP = (
    select(sweep_run.c.run_id, sweep.c.name)
    .join(sweep, sweep.c.id == sweep_run.c.sweep_id)
    .where(sweep_run.c.run_id.is_not(None))
)
_TEXTS: Mapping[Label, Select[Any]] = {
    "id": select(run.c.id, run.c.uid),
    "name": select(run.c.id, run.c.name),
    "group": select(run.c.id, run.c.group_name),
    "job_type": select(run.c.id, run.c.job_type),
    "tag": select(run_tag.c.run_id, run_tag.c.tag),
    "note": select(run_note.c.run_id, run_note.c.text),
    "host": select(writer.c.run_id, writer.c.host).distinct(),
    "project": select(run.c.id, project.c.name).join(project, project.c.id == run.c.project_id),
    "entity": select(run.c.id, entity.c.name).join(entity, entity.c.id == run.c.entity_id),
    "user": _USER,
    "device": _DEVICE,
    "sweep": _SWEEP,
    "finding": select(finding.c.run_id, finding.c.rule),
    "verdict": select(judgement.c.run_id, judgement.c.verdict),
}
"""By label, the ids of runs and their texts."""


def label_found(
    connection: Connection, label: Label, expression: str, projects: Collection[int] | None
) -> Condition:
    """Return runs with a text of a label that matches a regular expression; None: of all projects."""
    return _runs_with_match(connection, _TEXTS[label], expression, projects)


def field_found(
    connection: Connection, number: int, expression: str, projects: Collection[int] | None
) -> Condition:
    """Return runs with a text in the field of this id in which a regular expression is found."""
    texts = select(run_field.c.run_id, run_field.c.text).where(
        run_field.c.field_id == number, run_field.c.kind == TEXT
    )
    return _runs_with_match(connection, texts, expression, projects)


def _runs_with_match(
    connection: Connection, texts: Select[Any], expression: str, projects: Collection[int] | None
) -> Condition:
    is_found = finder(expression)
    if projects is not None:
        of_projects = select(run.c.id).where(among(connection, run.c.project_id, projects))
        texts = texts.where(texts.selected_columns[0].in_(of_projects))
    matching: set[int] = set()
    for rows in connection.execute(texts).partitions(_ROWS):
        deadline.check()
        matching.update(run_id for run_id, text in rows if is_found(text))
    listed = sorted(matching)
    return Condition(
        among(connection, run.c.id, listed), select(run.c.id).where(among(connection, run.c.id, listed))
    )
