"""Datasets and models that runs used and made."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from runvitals.server.database.database import Database, among
from runvitals.server.database.tables.registry import run_lineage
from runvitals.server.database.tables.runs import run
from runvitals.server.runs.storage.run_locks import lock_known_runs
from runvitals.store.errors import LimitReached

MAX_ENTRIES = 1000
"""Of each kind, of a run."""


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


class RunLineageTable:
    """The table of what runs used and made.

    Example:
        >>> metadata_store.run_lineage.add(run_id, Lineage(outputs=[{"model_id": "m-1", "step": 0}]))
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, run_id: int, added: Lineage) -> None:
        """Add what is not known yet. The first entry for the same thing is kept.

        Raises:
            UnknownRun: there is no such run.
            LimitReached: the run would have too much.
        """

        def work(connection: Connection) -> None:
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

        self._database.write(work)

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
