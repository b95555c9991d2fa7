"""Models that trainings log, before one is registered."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.artifacts.storage.run_lineage import link_models
from runvitals.server.database.database import StoredTable, among, in_transaction
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.registry import logged_model
from runvitals.server.runs.storage.run_locks import lock_known_runs

MAX_SEARCHED = 50_000


@dataclass(frozen=True, slots=True)
class LoggedModel:
    """A model of a project. Times are ms UTC.

    Args:
        uid: what clients know it by.
        run_uid: the run that made it.
    """

    uid: str
    project_id: int
    name: str
    type: str | None
    status: str
    run_uid: str | None
    params: Mapping[str, str]
    tags: Mapping[str, str]
    created_ms: int
    changed_ms: int


class LoggedModelTable(StoredTable):
    """The table of logged models.

    Example:
        >>> metadata_store.logged_models.get("m-4f5e").status
        'LOGGED_MODEL_READY'
    """

    @in_transaction
    def add(self, connection: Connection, model: LoggedModel, run_id: int | None = None) -> None:
        """Add a model whose id is new. `run_id`: the number of the run that made it."""
        row = {
            column.name: getattr(model, column.name) for column in logged_model.columns if column.name != "id"
        }
        encoded = {"params": json.dumps(dict(model.params)), "tags": json.dumps(dict(model.tags))}
        connection.execute(insert(logged_model).values({**row, **encoded}))
        if run_id is not None:
            lock_known_runs(connection, [run_id])
            link_models(connection, run_id, [model.uid], made=True)

    def get(self, uid: str) -> LoggedModel | None:
        """A model by its id; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(select(logged_model).where(logged_model.c.uid == uid)).first()
        return None if row is None else _model(row)

    def of_projects(self, project_ids: Iterable[int]) -> list[LoggedModel]:
        """The newest models of projects."""
        with self._database.read() as connection:
            statement = (
                select(logged_model)
                .where(among(connection, logged_model.c.project_id, project_ids))
                .order_by(logged_model.c.created_ms.desc(), logged_model.c.id.desc())
                .limit(MAX_SEARCHED)
            )
            return [_model(row) for row in connection.execute(statement)]

    @in_transaction
    def change(
        self,
        connection: Connection,
        uid: str,
        now_ms: int,
        status: str | None = None,
        tags: Mapping[str, str | None] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> None:
        """Set the status, tags and parameters of a model; None for a tag removes it."""
        this = logged_model.c.uid == uid
        row = connection.execute(select(logged_model).where(this).with_for_update()).first()
        if row is None:
            return
        merged_tags = json.loads(row.tags) | (tags or {})
        values = {
            "status": status or row.status,
            "tags": json.dumps({key: value for key, value in merged_tags.items() if value is not None}),
            "params": json.dumps(json.loads(row.params) | (params or {})),
            "changed_ms": now_ms,
        }
        connection.execute(update(logged_model).where(this).values(values))

    def delete(self, uid: str) -> None:
        """Delete a model."""
        statement = delete(logged_model).where(logged_model.c.uid == uid)
        self._database.write(lambda connection: connection.execute(statement))


def _model(row: Any) -> LoggedModel:
    return LoggedModel(
        row.uid,
        row.project_id,
        row.name,
        row.type,
        row.status,
        row.run_uid,
        stored_object(row.params, f"the parameters of model {row.name}"),
        stored_object(row.tags, f"the tags of model {row.name}"),
        row.created_ms,
        row.changed_ms,
    )
