"""Registries: their administrators, protected aliases and requests; MLflow's models become collections."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import sqlalchemy as sa
from alembic import op

from runvitals.server.database.migration import check_nothing_is_lost, rows_of

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

_ORDERED = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_REGISTRY: Final = "wandb-registry-model"
_OF_LINK_MODEL: Final = "model-registry"


def upgrade() -> None:
    """Move the models of MLflow's clients to the registry `model` of their team or user."""
    connection = op.get_bind()
    models = connection.execute(sa.text("SELECT * FROM registered_model ORDER BY id")).mappings().all()
    versions = connection.execute(sa.text("SELECT * FROM model_version ORDER BY version")).mappings().all()
    op.drop_table("model_version")
    op.drop_table("registered_model")
    _create_tables()
    _rename_model_registries(connection)
    by_model: dict[int, list[Any]] = {}
    for version in versions:
        by_model.setdefault(version["model_id"], []).append(version)
    for model in models:
        _move(connection, model, by_model.get(model["id"], []))


def downgrade() -> None:
    """Restore the tables of MLflow's models, if nothing would be lost."""
    losses = (
        (rows_of("registered_model"), "{} collections of registries have no place there: delete them first"),
        (rows_of("protected_alias"), "{} aliases are protected: remove the protection first"),
        (rows_of("registry_admin"), "{} users administer registries: remove them first"),
    )
    check_nothing_is_lost(op.get_bind(), revision, losses)
    tables = ("alias_request_comment", "alias_request", "model_version", "registered_model")
    for table in (*tables, "protected_alias", "registry_admin"):
        op.drop_table(table)
    op.create_table(
        "registered_model",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("entity_id", sa.Integer()),
        sa.Column("name", _ORDERED, nullable=False),
        sa.Column("description", sa.Text()),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("aliases", sa.Text(), nullable=False),
        sa.Column("last_version", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["entity_id"], ["entity.id"], name="fk_registered_model_entity_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_registered_model"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_registered_model_name_entity_id",
        "registered_model",
        ["name", sa.text("coalesce(entity_id, 0)")],
        unique=True,
    )
    op.create_index("ix_registered_model_entity_id", "registered_model", ["entity_id"])
    op.create_table(
        "model_version",
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        *(sa.Column(name, sa.Text()) for name in ("description",)),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("stage", "source", "location")),
        *(sa.Column(name, sa.Text()) for name in ("run_uid", "run_link", "logged_model")),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["model_id"], ["registered_model.id"], name="fk_model_version_model_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("model_id", "version", name="pk_model_version"),
    )


def _create_tables() -> None:
    op.create_table(
        "registry_admin",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        _cascade("registry_admin", "project_id", "project"),
        _cascade("registry_admin", "user_id", "user_account"),
        sa.PrimaryKeyConstraint("project_id", "user_id", name="pk_registry_admin"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_registry_admin_user_id", "registry_admin", ["user_id"])
    op.create_table(
        "protected_alias",
        sa.Column("project_id", sa.Integer(), nullable=False),
        sa.Column("alias", _ORDERED, nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        _cascade("protected_alias", "project_id", "project"),
        sa.PrimaryKeyConstraint("project_id", "alias", name="pk_protected_alias"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "registered_model",
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("properties", sa.Text(), nullable=False),
        _cascade("registered_model", "collection_id", "artifact_collection"),
        _author("registered_model"),
        sa.PrimaryKeyConstraint("collection_id", name="pk_registered_model"),
    )
    op.create_index("ix_registered_model_author_id", "registered_model", ["author_id"])
    op.create_table(
        "model_version",
        sa.Column("membership_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("description", sa.Text()),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("stage", "source", "location")),
        *(sa.Column(name, sa.Text()) for name in ("run_uid", "run_link", "logged_model")),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("downloads", sa.Integer(), nullable=False),
        sa.Column("changed_ms", sa.BigInteger(), nullable=False),
        _cascade("model_version", "membership_id", "artifact_membership"),
        _author("model_version"),
        sa.PrimaryKeyConstraint("membership_id", name="pk_model_version"),
    )
    op.create_index("ix_model_version_author_id", "model_version", ["author_id"])
    _create_requests()


def _create_requests() -> None:
    op.create_table(
        "alias_request",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("membership_id", sa.Integer(), nullable=False),
        sa.Column("alias", _ORDERED, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("closed_by", sa.Text()),
        sa.Column("closed_ms", sa.BigInteger()),
        sa.CheckConstraint(
            "state IN ('open', 'approved', 'declined', 'withdrawn')", name="ck_alias_request_state"
        ),
        _cascade("alias_request", "membership_id", "artifact_membership"),
        _author("alias_request"),
        sa.PrimaryKeyConstraint("id", name="pk_alias_request"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alias_request_author_id", "alias_request", ["author_id"])
    op.create_index("ix_alias_request_membership_id", "alias_request", ["membership_id"])
    op.create_table(
        "alias_request_comment",
        sa.Column("id", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("request_id", sa.Integer(), nullable=False),
        sa.Column("author_id", sa.Integer()),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        _cascade("alias_request_comment", "request_id", "alias_request"),
        _author("alias_request_comment"),
        sa.PrimaryKeyConstraint("id", name="pk_alias_request_comment"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alias_request_comment_author_id", "alias_request_comment", ["author_id"])
    op.create_index("ix_alias_request_comment_request_id", "alias_request_comment", ["request_id"])


def _cascade(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{other}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE")


def _author(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["author_id"], ["user_account.id"], name=f"fk_{table}_author_id", ondelete="SET NULL"
    )


# Rows


def _rename_model_registries(connection: sa.Connection) -> None:
    """`run.link_model()` of old clients links to the registry `model` now, unless both have existed."""
    other = (
        "SELECT 1 FROM project o WHERE o.name = :new AND coalesce(o.entity_id, 0) = coalesce(p.entity_id, 0)"
    )
    old = sa.text(f"SELECT p.id FROM project p WHERE p.name = :old AND NOT EXISTS ({other})")
    names = {"old": _OF_LINK_MODEL, "new": _REGISTRY}
    for project_id in connection.execute(old, names).scalars().all():
        rename = sa.text("UPDATE project SET name = :new WHERE id = :id")
        connection.execute(rename, {"new": _REGISTRY, "id": project_id})


def _move(connection: sa.Connection, model: Any, versions: list[Any]) -> None:
    project_id = _registry_of(connection, model["entity_id"], model["created_ms"])
    name = _free_name(connection, project_id, model["name"])
    collection_id = _add(
        connection,
        "artifact_collection",
        project_id=project_id,
        kind="portfolio",
        name=name,
        type="model",
        description=model["description"] or "",
        tags="[]",
        next_version=model["last_version"] + 1,
        created_ms=model["created_ms"],
        updated_ms=model["changed_ms"],
    )
    _add(connection, "registered_model", None, collection_id=collection_id, properties=model["tags"])
    aliases = json.loads(model["aliases"])
    for version in versions:
        names = [alias for alias, number in aliases.items() if number == version["version"]]
        _move_version(connection, model, collection_id, version, names)
    if versions:
        newest = "SELECT id FROM artifact_membership WHERE collection_id = :c ORDER BY number DESC LIMIT 1"
        membership_id = connection.execute(sa.text(newest), {"c": collection_id}).scalar_one()
        _add_alias(connection, collection_id, "latest", membership_id)


def _move_version(
    connection: sa.Connection, model: Any, collection_id: int, version: Any, aliases: list[str]
) -> None:
    entity_id, uid = model["entity_id"], version["run_uid"]
    run = sa.text("SELECT id FROM run WHERE uid = :uid AND coalesce(entity_id, 0) = coalesce(:entity, 0)")
    run_id = connection.execute(run, {"uid": uid, "entity": entity_id}).scalar()
    times = {"created_ms": version["created_ms"], "updated_ms": version["changed_ms"]}
    version_id = _add(
        connection,
        "artifact_version",
        collection_id=collection_id,
        version=version["version"],
        state="committed",
        digest=hashlib.md5(version["location"].encode(), usedforsecurity=False).hexdigest(),
        manifest_kind="full",
        description=version["description"] or "",
        metadata="{}",
        tags="[]",
        aliases="[]",
        run_id=run_id,
        bytes=0,
        files=0,
        **times,
    )
    membership_id = _add(
        connection,
        "artifact_membership",
        collection_id=collection_id,
        version_id=version_id,
        number=version["version"],
        created_ms=version["created_ms"],
    )
    same = ("description", "stage", "source", "location", "run_uid", "run_link", "logged_model")
    _add(
        connection,
        "model_version",
        None,
        membership_id=membership_id,
        author="",
        properties=version["tags"],
        downloads=0,
        changed_ms=version["changed_ms"],
        **{name: version[name] for name in same},
    )
    for alias in aliases:
        _add_alias(connection, collection_id, alias, membership_id)


def _add_alias(connection: sa.Connection, collection_id: int, alias: str, membership_id: int) -> None:
    names = {"collection_id": collection_id, "alias": alias, "membership_id": membership_id}
    _add(connection, "artifact_alias", None, **names)


def _registry_of(connection: sa.Connection, entity_id: int | None, now_ms: int) -> int:
    query = "SELECT id FROM project WHERE name = :name AND coalesce(entity_id, 0) = coalesce(:entity, 0)"
    values = {"name": _REGISTRY, "entity": entity_id}
    number = connection.execute(sa.text(query), values).scalar()
    if number is not None:
        return int(number)
    return _add(connection, "project", name=_REGISTRY, entity_id=entity_id, created_ms=now_ms)


def _free_name(connection: sa.Connection, project_id: int, name: str) -> str:
    query = sa.text("SELECT 1 FROM artifact_collection WHERE project_id = :project AND name = :name")
    names = (name, f"{name} of MLflow", *(f"{name} of MLflow {number}" for number in range(2, 1000)))
    return next(
        candidate
        for candidate in names
        if connection.execute(query, {"project": project_id, "name": candidate}).scalar() is None
    )


def _add(connection: sa.Connection, table: str, returned: str | None = "id", **values: Any) -> int:
    row = sa.table(table, *(sa.column(name) for name in {"id", *values}))
    statement = sa.insert(row).values(values)
    if returned is None:
        connection.execute(statement)
        return 0
    return int(connection.execute(statement.returning(row.c.id)).scalar_one())
