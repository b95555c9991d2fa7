"""Datasets and models that runs used and made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction
from runvitals.server.database.tables.registry import (
    dataset,
    dataset_use,
    logged_model,
    logged_model_run,
    run_lineage,
)
from runvitals.server.database.tables.runs import run
from runvitals.server.runs.storage.run_locks import lock_known_runs
from runvitals.store.errors import LimitReached

MAX_ENTRIES = 1000
"""Of each kind, of a run."""
_MAX_SOURCE: Final = 500
"""Characters of the source of a dataset that its node shows."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """Datasets and models that a run used and made, as clients sent them.

    Args:
        datasets: with `dataset` and `tags`.
        models: the models that it used; `outputs`: those that it made.
    """

    datasets: Sequence[Mapping[str, Any]] = ()
    models: Sequence[Mapping[str, Any]] = ()
    outputs: Sequence[Mapping[str, Any]] = ()


NOTHING: Final = Lineage()


class RunLineageTable(StoredTable):
    """The table of what runs used and made.

    Example:
        >>> metadata_store.run_lineage.add(run_id, Lineage(outputs=[{"model_id": "m-1", "step": 0}]))
    """

    @in_transaction
    def add(self, connection: Connection, run_id: int, added: Lineage) -> None:
        """Add what is not known yet. The first entry for the same thing is kept.

        Raises:
            UnknownRun: there is no such run.
            LimitReached: the run would have too much.
        """
        lock_known_runs(connection, [run_id])
        this = run_lineage.c.run_id == run_id
        row = connection.execute(select(run_lineage).where(this)).first()
        lineage = NOTHING if row is None else _lineage(row)
        values = {}
        for kind in ("datasets", "models", "outputs"):
            merged = _merge(getattr(lineage, kind), getattr(added, kind))
            if len(merged) > MAX_ENTRIES:
                raise LimitReached(f"a run has at most {MAX_ENTRIES} {kind}")
            values[kind] = json.dumps(merged)
        if row is None:
            connection.execute(insert(run_lineage).values(run_id=run_id, **values))
        else:
            connection.execute(update(run_lineage).where(this).values(values))
        _link_datasets(connection, run_id, added.datasets)
        link_models(connection, run_id, [entry["model_id"] for entry in added.models], made=False)
        link_models(connection, run_id, [entry["model_id"] for entry in added.outputs], made=True)

    def of_runs(self, run_ids: Iterable[int]) -> dict[int, Lineage]:
        """Return what runs used and made, by run; runs without any are missing."""
        with self._database.read() as connection:
            statement = select(run_lineage).where(among(connection, run_lineage.c.run_id, run_ids))
            return {row.run_id: _lineage(row) for row in connection.execute(statement)}

    def of_projects(self, project_ids: Iterable[int], most: int) -> list[tuple[int, Lineage]]:
        """Return what the newest runs outside the trash used and made, each with its project's id."""
        with self._database.read() as connection:
            statement = (
                select(run.c.project_id, run_lineage)
                .join(run, run.c.id == run_lineage.c.run_id)
                .where(among(connection, run.c.project_id, project_ids), run.c.deleted_ms.is_(None))
                .order_by(run.c.id.desc())
                .limit(most)
            )
            return [(row.project_id, _lineage(row)) for row in connection.execute(statement)]


def link_models(connection: Connection, run_id: int, uids: Sequence[str], *, made: bool) -> None:
    """Note that a run made or used logged models. Those that do not exist are left out."""
    query = select(logged_model.c.id).where(logged_model.c.uid.in_(uids)).order_by(logged_model.c.id)
    ids = connection.execute(query).scalars().all() if uids else ()
    rows = [{"model_id": number, "run_id": run_id, "made": made} for number in ids]
    add_rows(connection, logged_model_run, rows)


def _link_datasets(connection: Connection, run_id: int, entries: Sequence[Mapping[str, Any]]) -> None:
    """Note that a run used datasets, which are those of its project."""
    fields_by_dataset = {
        (fields["name"], fields["digest"]): fields for fields in (entry["dataset"] for entry in entries)
    }
    if not fields_by_dataset:
        return
    project_id = connection.execute(select(run.c.project_id).where(run.c.id == run_id)).scalar_one()
    rows = [
        {
            "project_id": project_id,
            "name": name,
            "digest": digest,
            "source_type": fields["source_type"],
            "source": fields["source"][:_MAX_SOURCE],
        }
        for (name, digest), fields in sorted(fields_by_dataset.items())
    ]
    add_rows(connection, dataset, rows)
    columns = dataset.c
    digests = sorted({digest for _, digest in fields_by_dataset})
    datasets = connection.execute(
        select(columns.id, columns.name, columns.digest).where(
            columns.project_id == project_id, columns.digest.in_(digests)
        )
    )
    uses = [
        {"dataset_id": row.id, "run_id": run_id}
        for row in datasets
        if (row.name, row.digest) in fields_by_dataset
    ]
    add_rows(connection, dataset_use, uses)


def _merge(
    entries: Sequence[Mapping[str, Any]], added: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    merged = {_key(entry): entry for entry in entries}
    for entry in added:
        merged.setdefault(_key(entry), entry)
    return list(merged.values())


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    dataset = entry.get("dataset")
    if isinstance(dataset, Mapping):
        return dataset.get("name"), dataset.get("digest")
    return entry.get("model_id"), entry.get("step")


def _lineage(row: Any) -> Lineage:
    return Lineage(json.loads(row.datasets), json.loads(row.models), json.loads(row.outputs))
