"""The names that usage refers to: present ones, and copies of those of what is gone."""

from __future__ import annotations

from sqlalchemy import Connection, Text, case, cast, literal, select

from runvitals.server.database.database import put_rows
from runvitals.server.database.tables.accounts import entity, service_account, user_account
from runvitals.server.database.tables.runs import project
from runvitals.server.database.tables.usage import usage_name

_NAMES = (
    ("entity", entity.c.id, entity.c.name),
    ("project", project.c.id, project.c.name),
    ("service_account", service_account.c.id, service_account.c.name),
)


def copy_names(connection: Connection) -> None:
    """Copy the present names, before what they name is gone."""
    copied = copied_names(connection)
    rows = [
        {"kind": kind, "id": number, "name": name}
        for (kind, number), name in present_names(connection).items()
        if copied.get((kind, number)) != name
    ]
    put_rows(connection, usage_name, rows)


def copied_names(connection: Connection) -> dict[tuple[str, int], str]:
    """The names that were copied, by kind and id: also of what is gone."""
    rows = connection.execute(select(usage_name.c.kind, usage_name.c.id, usage_name.c.name))
    return {(row.kind, row.id): row.name for row in rows}


def present_names(connection: Connection) -> dict[tuple[str, int], str]:
    """The names of teams, users, projects and service accounts as they are now, by kind and id."""
    gone = literal("deleted user #").concat(cast(user_account.c.id, Text))
    shown_name = case((user_account.c.state == "deleted", gone), else_=entity.c.name)
    users = select(user_account.c.id, shown_name).join(entity, entity.c.id == user_account.c.entity_id)
    statements = [(kind, select(number, name)) for kind, number, name in _NAMES] + [("user", users)]
    return {
        (kind, number): name
        for kind, statement in statements
        for number, name in connection.execute(statement)
    }
