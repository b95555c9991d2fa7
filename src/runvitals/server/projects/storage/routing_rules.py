"""The rules of projects that choose the run of what OpenTelemetry and Prometheus send."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, delete, func, insert, select

from runvitals.model.errors import UnknownProject
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.accounts import entity
from runvitals.server.database.tables.runs import project, routing_rules

Rules = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class StoredRules:
    """The rules that a project sets, by field; without any, `changed_ms` is None."""

    rules: dict[str, list[str]] = field(default_factory=dict)
    changed_ms: int | None = None


class RoutingRuleTable(StoredTable):
    """The table of routing rules. What they mean is not known here.

    Example:
        >>> metadata_store.routing_rules.set(3, {"run": ["{trial}"]}, CLI, now_ms)
        >>> metadata_store.routing_rules.get(3).rules
        {'run': ['{trial}']}
    """

    def get(self, project_id: int) -> StoredRules:
        """The rules of a project."""
        statement = select(routing_rules.c.data, routing_rules.c.changed_ms).where(
            routing_rules.c.project_id == project_id
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return StoredRules() if row is None else StoredRules(json.loads(row.data), row.changed_ms)

    def of_project(self, entity_id: int | None, name: str) -> StoredRules:
        """The rules of a project by its name; none if there is no such project."""
        statement = (
            select(routing_rules.c.data, routing_rules.c.changed_ms)
            .join(project, project.c.id == routing_rules.c.project_id)
            .where(project.c.name == name, func.coalesce(project.c.entity_id, 0) == (entity_id or 0))
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return StoredRules() if row is None else StoredRules(json.loads(row.data), row.changed_ms)

    @in_transaction
    def set(
        self, connection: Connection, project_id: int, rules: Rules, by: Actor, now_ms: int
    ) -> StoredRules:
        """Replace the rules of a project by valid ones; without any, the default ones count again.

        Raises:
            UnknownProject: there is no such project.
        """
        new_rules = {field: list(texts) for field, texts in rules.items()}
        owner_row = connection.execute(
            select(project.c.name, project.c.entity_id, entity.c.name.label("entity"))
            .outerjoin(entity, entity.c.id == project.c.entity_id)
            .where(project.c.id == project_id)
        ).first()
        if owner_row is None:
            raise UnknownProject(f"there is no project with the id {project_id}")
        take_turns(connection, "routing_rules", project_id)
        connection.execute(delete(routing_rules).where(routing_rules.c.project_id == project_id))
        if new_rules:
            row = {"project_id": project_id, "data": json.dumps(new_rules), "changed_ms": now_ms}
            connection.execute(insert(routing_rules).values(row))
        owner = None if owner_row.entity_id is None else (owner_row.entity_id, owner_row.entity)
        record(
            connection,
            now_ms,
            by,
            "project.routing_rules",
            entity=owner,
            project=owner_row.name,
            after={"fields": sorted(new_rules)},
        )
        return StoredRules(new_rules, now_ms) if new_rules else StoredRules()
