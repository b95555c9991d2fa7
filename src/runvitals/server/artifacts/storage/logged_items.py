"""Datasets that runs used and models that they logged, as MLflow's clients send them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import Column, ColumnElement, ScalarSelect, Select, Table, func, or_, select

from runvitals.model.names import plain_text
from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.registry import dataset, dataset_use, logged_model, logged_model_run
from runvitals.server.database.tables.runs import project, run

ItemKind = Literal["dataset", "model"]
ITEM_KINDS: Final[tuple[ItemKind, ...]] = ("dataset", "model")


@dataclass(frozen=True, slots=True)
class LoggedItem:
    """A dataset or logged model.

    Attributes:
        shown: what is shown of it besides its project, by column.
    """

    id: int
    project_id: int
    project: str
    entity: str | None
    shown: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return what is shown of it, with where it is."""
        return {"entity": self.entity, "project": self.project, **self.shown}


@dataclass(frozen=True, slots=True)
class _Kind:
    """A table of items. `key`: by which addresses name one; `words`: what a search looks at."""

    table: Table
    key: str
    shown: Mapping[str, str]
    words: Sequence[str]
    used_by: tuple[Column[int], Column[int], ColumnElement[bool] | None]


_KINDS: Final[Mapping[ItemKind, _Kind]] = {
    "dataset": _Kind(
        dataset,
        "id",
        {name: name for name in ("id", "name", "digest", "source_type", "source")},
        ("name", "digest", "source"),
        (dataset_use.c.dataset_id, dataset_use.c.run_id, None),
    ),
    "model": _Kind(
        logged_model,
        "uid",
        {"model_id": "uid", **{name: name for name in ("name", "type", "status", "created_ms")}},
        ("name", "uid"),
        (logged_model_run.c.model_id, logged_model_run.c.run_id, ~logged_model_run.c.made),
    ),
}


class LoggedItemTable(StoredTable):
    """The tables of datasets and of logged models, as far as their projects are not in the trash.

    Example:
        >>> metadata_store.artifacts.logged_items.find("dataset", project_id, 7).shown["name"]
        'mnist'
    """

    def read(self, kind: ItemKind, ids: Iterable[int]) -> dict[int, LoggedItem]:
        """Return items by their number."""
        with self._database.read() as connection:
            statement = _items(kind).where(among(connection, _KINDS[kind].table.c.id, ids))
            return {row.item_id: _item(kind, row) for row in connection.execute(statement)}

    def find(self, kind: ItemKind, project_id: int, key: str | int) -> LoggedItem | None:
        """Return an item of a project: a dataset by its number, a model by the id that clients know."""
        columns = _KINDS[kind].table.c
        same = (columns.project_id == project_id, columns[_KINDS[kind].key] == key)
        with self._database.read() as connection:
            row = connection.execute(_items(kind).where(*same)).first()
            return None if row is None else _item(kind, row)

    def page(
        self, kind: ItemKind, project_id: int, words: Sequence[str], skip: int, limit: int
    ) -> tuple[list[tuple[LoggedItem, int]], int]:
        """A page of the items of a project, the newest first, and how many there are.

        Args:
            words: all of them occur in the item.

        Returns:
            Each with how many runs of the project used it.
        """
        columns = _KINDS[kind].table.c
        conditions = (columns.project_id == project_id, *_conditions(kind, words))
        with self._database.read() as connection:
            total = connection.execute(
                select(func.count()).select_from(_KINDS[kind].table).where(*conditions)
            )
            listed = _items(kind).add_columns(_uses(kind).label("runs")).where(*conditions)
            rows = connection.execute(listed.order_by(columns.id.desc()).offset(skip).limit(limit))
            return [(_item(kind, row), row.runs) for row in rows], int(total.scalar_one())

    def runs_among(self, project_id: int, uids: Iterable[str]) -> set[str]:
        """Return those of some run ids that runs of a project outside the trash have; at most 1,000."""
        run_ids = sorted(set(uids))
        mine = (run.c.project_id == project_id, run.c.uid.in_(run_ids), run.c.deleted_ms.is_(None))
        with self._database.read() as connection:
            return set(connection.execute(select(run.c.uid).where(*mine)).scalars())

    def with_words(
        self, kind: ItemKind, words: Sequence[str], project_ids: Iterable[int] | None, limit: int
    ) -> list[LoggedItem]:
        """Return the newest items with all of some words, of some projects; None: of all."""
        columns = _KINDS[kind].table.c
        conditions = _conditions(kind, words)
        with self._database.read() as connection:
            if project_ids is not None:
                conditions.append(among(connection, columns.project_id, project_ids))
            newest = _items(kind).where(*conditions).order_by(columns.id.desc()).limit(limit)
            return [_item(kind, row) for row in connection.execute(newest)]


def _items(kind: ItemKind) -> Select[Any]:
    columns = _KINDS[kind].table.c
    return (
        select(
            columns.id.label("item_id"),
            columns.project_id,
            project.c.name.label("of_project"),
            entity.c.name.label("of_entity"),
            *(columns[column].label(name) for name, column in _shown_columns(kind)),
        )
        .join(project, project.c.id == columns.project_id)
        .outerjoin(entity, entity.c.id == project.c.entity_id)
        .where(project.c.deleted_ms.is_(None))
    )


def _shown_columns(kind: ItemKind) -> list[tuple[str, str]]:
    """Return the names of what is shown with their columns; in a query they begin with `shown_`."""
    return [(f"shown_{name}", column) for name, column in _KINDS[kind].shown.items()]


def _item(kind: ItemKind, row: Any) -> LoggedItem:
    fields = {name: getattr(row, f"shown_{name}") for name in _KINDS[kind].shown}
    return LoggedItem(row.item_id, row.project_id, row.of_project, row.of_entity, fields)


def _uses(kind: ItemKind) -> ScalarSelect[int]:
    """How many runs outside the trash used an item, of those in its project."""
    columns = _KINDS[kind].table.c
    item_id, run_id, condition = _KINDS[kind].used_by
    counted = (
        select(func.count())
        .select_from(item_id.table)
        .join(run, run.c.id == run_id)
        .where(item_id == columns.id, run.c.project_id == columns.project_id, run.c.deleted_ms.is_(None))
    )
    return (
        (counted if condition is None else counted.where(condition))
        .correlate(_KINDS[kind].table)
        .scalar_subquery()
    )


def _conditions(kind: ItemKind, words: Iterable[str]) -> list[ColumnElement[bool]]:
    columns = _KINDS[kind].table.c
    return [
        or_(
            *(
                func.lower(columns[name]).contains(plain_text(word).lower(), autoescape=True)
                for name in _KINDS[kind].words
            )
        )
        for word in words
    ]
