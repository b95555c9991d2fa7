"""What lists of collections and versions of artifacts can be filtered and sorted by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from runvitals.model.mongo_fields import BadFilter
from runvitals.server.artifacts.storage.rows import Collection, CollectionVersion
from runvitals.server.doors.wandb import registry_filters as conditions
from runvitals.server.doors.wandb.executor import InvalidArgument

OF_COLLECTIONS: Final[Mapping[str, conditions.Convert]] = {
    "artifact_collection_id": conditions.number,
    "name": conditions.text,
    "tag": conditions.text,
    "description": conditions.text,
    "created_at": conditions.time,
    "updated_at": conditions.time,
}
OF_VERSIONS: Final[Mapping[str, conditions.Convert]] = {
    "id": conditions.number,
    "version": conditions.version,
    "tag": conditions.text,
    "alias": conditions.text,
    "metadata": conditions.scalar,
    "artifact_size": conditions.number,
    "created_at": conditions.time,
    "updated_at": conditions.time,
    "linked_at": conditions.time,
    "state": conditions.text,
}
ORDERS_OF_COLLECTIONS: Final[Mapping[str, Callable[[Collection], Any]]] = {
    "name": lambda collection: collection.name,
    "created_at": lambda collection: collection.created_ms,
    "updated_at": lambda collection: collection.updated_ms,
}
T = TypeVar("T")


def collection_row(row: Collection) -> conditions.Row:
    """Return the fields of a collection that can be filtered."""
    return {
        "artifact_collection_id": row.id,
        "name": row.name,
        "tag": row.tags,
        "description": row.description,
        "created_at": row.created_ms,
        "updated_at": row.updated_ms,
    }


def version_row(row: CollectionVersion) -> conditions.Row:
    """Return the fields of a version that can be filtered."""
    return {
        "id": row.version.id,
        "version": row.number,
        "tag": row.version.tags,
        "alias": (f"v{row.number}", *row.aliases),
        "metadata": row.version.metadata,
        "artifact_size": row.version.bytes,
        "created_at": row.version.created_ms,
        "updated_at": row.version.updated_ms,
        "linked_at": row.created_ms,
        "state": row.version.state.upper(),
    }


def compiled(filters: str | None, fields: Mapping[str, conditions.Convert]) -> conditions.Holds:
    """Compile a filter, or raise InvalidArgument."""
    try:
        return conditions.compile_filter(filters, fields)
    except BadFilter as error:
        raise InvalidArgument(str(error)) from None


def sorted_by(rows: Iterable[T], order: str | None, by: Mapping[str, Callable[[T], Any]]) -> list[T]:
    """Put rows in the requested order.

    Args:
        order: `name`, `+created_at`, `-created_at`; None: as they are.

    Raises:
        InvalidArgument: there is no such order.
    """
    if not order:
        return list(rows)
    return sorted(rows, key=by[order_name(order, by)], reverse=order.startswith("-"))


def order_name(order: str, names: Iterable[str]) -> str:
    """Return our name of an order without its direction.

    Raises:
        InvalidArgument: there is no such order.
    """
    name = order[1:] if order[:1] in ("+", "-") else order
    name = conditions.SNAKE_CASE.get(name, name)
    if name not in names:
        raise InvalidArgument(f"cannot sort by {order[:60]!r}; expected one of {', '.join(sorted(names))}")
    return name
