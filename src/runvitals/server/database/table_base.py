"""Types and naming rules of all tables of the metadata store."""

from __future__ import annotations

from sqlalchemy import Column, Identity, Index, Integer, MetaData, Text, text
from sqlalchemy.sql.elements import TextClause
from sqlalchemy.types import TypeEngine

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def ordered_text() -> TypeEngine[str]:
    """Text that both databases sort by code points, independent of PostgreSQL's locale."""
    return Text().with_variant(Text(collation="C"), "postgresql")


def id_column() -> Column[int]:
    """The column of ids that the database assigns."""
    return Column("id", Integer, Identity(), primary_key=True)


def unique_where(name: str, *columns: str | TextClause, where: str) -> Index:
    """A unique index of the rows that fulfil a condition.

    PostgreSQL's option is set only where the tables are created (`newest_schema`): naming it loads the
    dialect, 33 ms at every start.
    """
    return Index(name, *columns, unique=True, sqlite_where=text(where))
