"""Names, tags and locations of MLflow's experiments, which projects do not have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.server.database.database import StoredTable, among, in_transaction
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.runs import mlflow_experiment, project, run
from runvitals.store.errors import NameTaken

SCHEME: Final = "mlflow-artifacts:"


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """A project as MLflow's clients see it. Times are ms UTC.

    Args:
        id: of the project.
        project: its name.
        name: the name that the client gave, where a project cannot have it; else None.
        artifact_location: as the client chose it; None: this server. See `artifact_root`.
        deleted_ms: since when it is in the trash.
    """

    id: int
    project: str
    entity_id: int | None
    entity: str | None
    created_ms: int
    deleted_ms: int | None
    name: str | None = None
    artifact_location: str | None = None
    changed_ms: int | None = None
    tags: Mapping[str, str] = field(default_factory=dict)

    def artifact_root(self, experiment_id: str) -> str:
        """Return where clients store artifacts; on this server, files are below the id of the experiment.

        Args:
            experiment_id: as clients know it.

        Example:
            >>> StoredExperiment(3, "digits", None, None, 0, None).artifact_root("3")
            'mlflow-artifacts:/3'
        """
        location = (self.artifact_location or "").rstrip("/")
        chose_a_folder_here = location.startswith(SCHEME) and not location.startswith(f"{SCHEME}//")
        return f"{SCHEME}/{experiment_id}" if not location or chose_a_folder_here else location


class MlflowExperimentTable(StoredTable):
    """The projects as experiments.

    Example:
        >>> metadata_store.mlflow_experiments.set_tags(3, {"team": "vision"})
        >>> metadata_store.mlflow_experiments.get(3).tags
        {'team': 'vision'}
    """

    def get(self, project_id: int) -> StoredExperiment | None:
        """Return the experiment of a project, also one in the trash; None if there is no such project."""
        return next(iter(self.of_projects([project_id])), None)

    def of_projects(self, project_ids: Iterable[int]) -> list[StoredExperiment]:
        """Return the experiments of projects, by id."""
        with self._database.read() as connection:
            condition = among(connection, project.c.id, project_ids)
            rows = connection.execute(_EXPERIMENTS.where(condition).order_by(project.c.id)).all()
        return [_experiment(*row) for row in rows]

    def all(self) -> list[StoredExperiment]:
        """Return the experiments of all projects, by id."""
        with self._database.read() as connection:
            rows = connection.execute(_EXPERIMENTS.order_by(project.c.id)).all()
        return [_experiment(*row) for row in rows]

    def named(self, name: str) -> list[StoredExperiment]:
        """Return those of projects with this name, or that MLflow's clients know by it."""
        has_name = or_(mlflow_experiment.c.name == name, project.c.name == name)
        with self._database.read() as connection:
            rows = connection.execute(_EXPERIMENTS.where(has_name).order_by(project.c.id)).all()
        return [_experiment(*row) for row in rows]

    def set(self, project_id: int, now_ms: int, **values: str | None) -> None:
        """Set the `name` or `artifact_location` of an experiment."""
        self._database.write(lambda connection: _set(connection, project_id, now_ms, values))

    @in_transaction
    def set_tags(self, connection: Connection, project_id: int, tags: Mapping[str, str | None]) -> None:
        """Set tags of an experiment; None removes one."""
        _set(connection, project_id, None, {"project_id": project_id})
        statement = select(mlflow_experiment.c.tags).where(mlflow_experiment.c.project_id == project_id)
        stored = json.loads(connection.execute(statement.with_for_update()).scalar_one())
        new_tags = {name: value for name, value in {**stored, **tags}.items() if value is not None}
        _set(connection, project_id, None, {"tags": json.dumps(new_tags)})

    @in_transaction
    def rename(self, connection: Connection, project_id: int, name: str, now_ms: int) -> None:
        """Rename the project of an experiment on a server without accounts.

        Raises:
            NameTaken: another one has the name.
        """
        try:
            connection.execute(update(project).where(project.c.id == project_id).values(name=name))
        except IntegrityError:
            raise NameTaken(f"the project {name!r} already exists") from None
        _set(connection, project_id, now_ms, {"name": None})

    @in_transaction
    def trash(self, connection: Connection, project_id: int, now_ms: int) -> None:
        """Move an experiment with its runs to the trash.

        Only on a server without accounts, where projects have no trash.
        """
        _set(connection, project_id, now_ms, {"deleted_ms": now_ms})
        living = (run.c.project_id == project_id, run.c.deleted_ms.is_(None))
        connection.execute(update(run).where(*living).values(deleted_ms=now_ms))

    @in_transaction
    def restore(self, connection: Connection, project_id: int, now_ms: int) -> None:
        """Undo `trash`, for the runs that went there with the experiment."""
        statement = select(mlflow_experiment.c.deleted_ms).where(mlflow_experiment.c.project_id == project_id)
        deleted_ms = connection.execute(statement).scalar()
        if deleted_ms is None:
            return
        with_it = (run.c.project_id == project_id, run.c.deleted_ms == deleted_ms)
        connection.execute(update(run).where(*with_it).values(deleted_ms=None))
        _set(connection, project_id, now_ms, {"deleted_ms": None})


_EXPERIMENTS = (
    select(
        project.c.id,
        project.c.name,
        project.c.entity_id,
        entity.c.name,
        project.c.created_ms,
        project.c.deleted_ms,
        mlflow_experiment.c.name,
        mlflow_experiment.c.artifact_location,
        mlflow_experiment.c.changed_ms,
        mlflow_experiment.c.deleted_ms,
        mlflow_experiment.c.tags,
    )
    .outerjoin(mlflow_experiment, mlflow_experiment.c.project_id == project.c.id)
    .outerjoin(entity, entity.c.id == project.c.entity_id)
)


def _experiment(
    number: int,
    project_name: str,
    entity_id: int | None,
    entity_name: str | None,
    created_ms: int,
    deleted_ms: int | None,
    name: str | None,
    artifact_location: str | None,
    changed_ms: int | None,
    trashed_ms: int | None,
    tags: str | None,
) -> StoredExperiment:
    deleted = trashed_ms if deleted_ms is None else deleted_ms
    tag_values = stored_object(tags, f"the tags of experiment {number}") if tags else {}
    return StoredExperiment(
        number,
        project_name,
        entity_id,
        entity_name,
        created_ms,
        deleted,
        name,
        artifact_location,
        changed_ms,
        tag_values,
    )


def _set(connection: Connection, project_id: int, now_ms: int | None, values: Mapping[str, object]) -> None:
    """Set values; `now_ms`: the time of the change, None for tags, which MLflow does not count as one."""
    of_project = mlflow_experiment.c.project_id == project_id
    changed = dict(values) if now_ms is None else {**values, "changed_ms": now_ms}
    if connection.execute(update(mlflow_experiment).where(of_project).values(changed)).rowcount:
        return
    row = {"tags": "{}", "changed_ms": 0, **changed, "project_id": project_id}  # 0: as it was created
    connection.execute(insert(mlflow_experiment).values(row))
