"""The tables of projects, runs, writers and metrics.

Integer ids are never reused, even after a deletion, because samples are stored under them. All times are
milliseconds UTC. JSON is stored as ASCII text and never queried; what is searched or sorted by is copied to
columns.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from runvitals.server.database.table_base import id_column, metadata, ordered_text


def _of_run(primary_key: bool = False) -> Column[int]:
    to_run = ForeignKey("run.id", ondelete="CASCADE")
    return Column("run_id", Integer, to_run, nullable=False, primary_key=primary_key)


def _ending() -> list[Column[int] | Column[bool]]:
    """How something ended, in addition to its state; null if unknown."""
    return [
        Column("exit_code", BigInteger),  # unsigned 32-bit on Windows
        Column("signal", BigInteger),
        Column("out_of_memory", Boolean),
    ]


# `entity_id`: the team or user that the project belongs to; null in a store without accounts, which has one
# set of names. `visibility` null: the team's.
project = Table(
    "project",
    metadata,
    id_column(),
    Column("name", ordered_text(), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("entity_id", Integer, ForeignKey("entity.id")),
    Column("owner_id", Integer, ForeignKey("user_account.id")),
    Column("visibility", Text),
    Column("description", Text, nullable=False, server_default=""),
    Column("overview", Text, nullable=False, server_default=""),
    Column("deleted_ms", BigInteger),
    Index("uq_project_name_entity_id", "name", text("coalesce(entity_id, 0)"), unique=True),
    sqlite_autoincrement=True,
)

# What MLflow's clients set of a project, which is an experiment to them. `name`: one that a project cannot
# have. `deleted_ms`: only on servers without accounts, where projects have no trash. `tags`: a JSON object.
mlflow_experiment = Table(
    "mlflow_experiment",
    metadata,
    Column(
        "project_id",
        Integer,
        ForeignKey("project.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("name", ordered_text(), index=True),
    Column("artifact_location", Text),
    Column("changed_ms", BigInteger, nullable=False),
    Column("deleted_ms", BigInteger),
    Column("tags", Text, nullable=False),
)

# `data`: a JSON object of lists of rules, by field.
routing_rules = Table(
    "routing_rules",
    metadata,
    Column(
        "project_id",
        Integer,
        ForeignKey("project.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("data", Text, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
)

# `uid` is the run id users see. A run is running until `alive_until_ms`, afterwards it is in `settled_state`;
# `alive_until_ms` is null once all hosts have ended. The indexes end in `deleted_ms` so that runs can be
# counted, and those in the trash skipped, without reading their rows. `author_id`: the user whose run it is;
# null for runs of before accounts and those of a service account that named nobody. `entity_id`: a copy of
# the project's.
run = Table(
    "run",
    metadata,
    id_column(),
    Column("uid", ordered_text(), nullable=False),
    Column("project_id", Integer, ForeignKey("project.id"), nullable=False),
    Column("name", ordered_text(), nullable=False),
    Column("group_name", ordered_text(), nullable=False),
    Column("job_type", ordered_text(), nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    Column("alive_until_ms", BigInteger),
    Column("settled_state", Text, nullable=False),
    *_ending(),
    Column("stop_requested_ms", BigInteger),
    Column("deleted_ms", BigInteger),
    Column("author_id", Integer, ForeignKey("user_account.id")),
    Column("service_account_id", Integer, ForeignKey("service_account.id", ondelete="SET NULL")),
    Column("entity_id", Integer, ForeignKey("entity.id")),
    Column("read_day", Integer),
    Index("uq_run_uid_entity_id", "uid", text("coalesce(entity_id, 0)"), unique=True),
    Index("ix_run_author", "author_id", "started_ms", "id", "deleted_ms"),
    Index("ix_run_started", "started_ms", "id", "deleted_ms"),
    Index("ix_run_project", "project_id", "started_ms", "id", "deleted_ms"),
    Index("ix_run_name", "name", "id", "deleted_ms"),
    Index("ix_run_state", "alive_until_ms", "settled_state", "project_id", "deleted_ms"),
    sqlite_autoincrement=True,
)

# The run ids of runs that were deleted for good: no other run of the entity may get them. `uid_digest`: the
# first 16 bytes of SHA-256.
run_tombstone = Table(
    "run_tombstone",
    metadata,
    Column("entity_id", Integer, ForeignKey("entity.id"), primary_key=True),
    Column("uid_digest", LargeBinary, primary_key=True),
    Column("purged_ms", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# `lane_id`: the id under which the sample store keeps what this writer recorded. See `writers`.
# `api_key_id`: the key that it sent first with; the key may be gone.
writer = Table(
    "writer",
    metadata,
    id_column(),
    _of_run(),
    Column("name", ordered_text(), nullable=False),
    Column("lane_id", Integer, nullable=False, index=True),
    Column("role", ordered_text(), nullable=False),
    Column("host", ordered_text(), nullable=False),
    Column("pid", BigInteger),
    Column("rank", BigInteger),
    Column("interval_s", Double),
    Column("started_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    Column("heard_ms", BigInteger, nullable=False),
    Column("end_state", Text),
    *_ending(),
    Column("api_key_id", Integer),
    UniqueConstraint("run_id", "name"),
    Index(None, "host", "run_id"),
    sqlite_autoincrement=True,
)

process = Table(
    "process",
    metadata,
    _of_run(primary_key=True),
    Column("host", ordered_text(), primary_key=True),
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("rank", BigInteger),
    Column("local_rank", BigInteger),
    Column("world_size", BigInteger),
    Column("ended_ms", BigInteger),
    *_ending(),
    sqlite_with_rowid=False,
)

metric = Table(
    "metric",
    metadata,
    id_column(),
    Column("key", ordered_text(), nullable=False, unique=True),
    sqlite_autoincrement=True,
)

# `metric_ids`: little-endian int32. `digest`: SHA-256 of these bytes.
schema = Table(
    "schema",
    metadata,
    id_column(),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("metric_ids", LargeBinary, nullable=False),
    sqlite_autoincrement=True,
)

writer_schema = Table(
    "writer_schema",
    metadata,
    Column("writer_id", Integer, ForeignKey("writer.id", ondelete="CASCADE"), primary_key=True),
    Column("schema_id", Integer, ForeignKey("schema.id"), primary_key=True),
    sqlite_with_rowid=False,
)

# One JSON object per section (and host, for sections kept by host). `set_ms`: when its newest keys were set;
# `older`: a JSON object with the times of the keys that were set before that.
section = Table(
    "section",
    metadata,
    _of_run(primary_key=True),
    Column("name", ordered_text(), primary_key=True),
    Column("host", ordered_text(), primary_key=True),
    Column("body", Text, nullable=False),
    Column("set_ms", BigInteger, nullable=False),
    Column("older", Text, nullable=False),
)

# Runs whose latest rows of `log()` may not be in their summaries yet: see `pending_summaries`.
# `server`: its number among those that run (see `server_link`); 0 with SQLite.
pending_summary = Table(
    "pending_summary",
    metadata,
    _of_run(primary_key=True),
    Column("server", Integer, primary_key=True, autoincrement=False, nullable=False),
)

run_tag = Table(
    "run_tag",
    metadata,
    _of_run(primary_key=True),
    Column("tag", ordered_text(), primary_key=True),
    Index(None, "tag", "run_id"),
    sqlite_with_rowid=False,
)

# Names of fields that runs are sorted and filtered by: `config.lr`, `summary.loss`, `system.gpu`.
field = Table(
    "field",
    metadata,
    id_column(),
    Column("name", ordered_text(), nullable=False, unique=True),
    sqlite_autoincrement=True,
)

# `kind`: a number (then `text` is empty) or a text (then `number` is 0). Not null: pages need a total order.
run_field = Table(
    "run_field",
    metadata,
    _of_run(primary_key=True),
    Column("field_id", Integer, ForeignKey("field.id"), primary_key=True),
    Column("kind", SmallInteger, nullable=False),
    Column("number", Double, nullable=False),
    Column("text", ordered_text(), nullable=False),
    Index(None, "field_id", "kind", "number", "text", "run_id"),
    sqlite_with_rowid=False,
)

# The text that searches match, case folded. It has a trigram index: on SQLite the virtual table run_text_fts
# and its triggers, on PostgreSQL ix_run_text_trigram. Both are defined in `newest_schema`.
run_text = Table("run_text", metadata, _of_run(primary_key=True), Column("text", Text, nullable=False))

# The notes of the runs that have some, as filters match them: cut, and without NUL.
run_note = Table(
    "run_note", metadata, _of_run(primary_key=True), Column("text", ordered_text(), nullable=False)
)

# The runs whose system statistics are among their fields. `as_of_ms`: `last_ms` of the run then. `version`:
# see `model.system_statistics`.
run_statistics = Table(
    "run_statistics",
    metadata,
    _of_run(primary_key=True),
    Column("as_of_ms", BigInteger, nullable=False),
    Column("version", SmallInteger, nullable=False),
)

# (`writer_id`, `seq`) identifies an event sent by a writer, so that it is stored once.
event = Table(
    "event",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    _of_run(),
    Column("writer_id", Integer, ForeignKey("writer.id", ondelete="CASCADE")),
    Column("seq", BigInteger),
    Column("time_ms", BigInteger, nullable=False),
    Column("level", ordered_text(), nullable=False),
    Column("name", ordered_text(), nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("writer_id", "seq"),
    Index(None, "run_id", "time_ms", "id"),
    sqlite_autoincrement=True,
)

# (`writer_id`, `seq`) identifies a piece of output. `size`: bytes of the text as UTF-8.
console = Table(
    "console",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    _of_run(),
    Column("writer_id", Integer, ForeignKey("writer.id", ondelete="CASCADE"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("time_ms", BigInteger, nullable=False),
    Column("stream", SmallInteger, nullable=False),
    Column("text", Text, nullable=False),
    Column("size", Integer, nullable=False),
    UniqueConstraint("writer_id", "seq"),
    Index(None, "run_id", "time_ms", "id"),
    sqlite_autoincrement=True,
)

# How much of a run's output is stored, and how much was dropped.
console_kept = Table(
    "console_kept",
    metadata,
    _of_run(primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("dropped_bytes", BigInteger, nullable=False),
)

# How much of their lines wandb's clients have sent, and whose lines they are: see `wandb_clients`.
wandb_client = Table(
    "wandb_client",
    metadata,
    _of_run(primary_key=True),
    Column("client", ordered_text(), primary_key=True),
    Column("host", ordered_text(), nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("history_lines", BigInteger, nullable=False),
    Column("event_lines", BigInteger, nullable=False),
    Column("console_lines", BigInteger, nullable=False),
    Column("row_ms", BigInteger, nullable=False),
    Column("ended", Boolean, nullable=False),
    sqlite_with_rowid=False,
)

# (`writer_id`, `seq`) identifies a media record. `body`: its items, a JSON list.
media = Table(
    "media",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), Identity(), primary_key=True),
    _of_run(),
    Column("writer_id", Integer, ForeignKey("writer.id", ondelete="CASCADE"), nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("time_ms", BigInteger, nullable=False),
    Column("step", Double),
    Column("key", ordered_text(), nullable=False),
    Column("kind", Text, nullable=False),
    Column("body", Text, nullable=False),
    UniqueConstraint("writer_id", "seq"),
    Index(None, "run_id", "key", "step", "time_ms", "id"),
    Index(None, "run_id", "kind", "step"),
    sqlite_autoincrement=True,
)

# Files whose contents are in a file store. `media_type`: from the content. `place`: 0: in that of the server;
# otherwise in the bucket of the team with this entity id.
stored_file = Table(
    "stored_file",
    metadata,
    id_column(),
    Column("sha256", ordered_text(), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("media_type", Text, nullable=False),
    Column("created_ms", BigInteger, nullable=False),
    Column("place", Integer, nullable=False, server_default=text("0")),
    UniqueConstraint("sha256", "place"),
    sqlite_autoincrement=True,
)

# The files that a run sent. Only these can be read through it, whatever its records name.
run_file = Table(
    "run_file",
    metadata,
    _of_run(primary_key=True),
    Column("file_id", Integer, ForeignKey("stored_file.id"), primary_key=True, index=True),
    sqlite_with_rowid=False,
)

# `digest`: SHA-256 of a random secret of 256 bits, which is not stored: it needs no salt and cannot be
# guessed.
token = Table(
    "token",
    metadata,
    id_column(),
    Column("name", ordered_text(), nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created_ms", BigInteger, nullable=False),
    Column("last_used_ms", BigInteger),
    Column("revoked_ms", BigInteger),
    sqlite_autoincrement=True,
)

# The sample store that the ids here are used in: no row, or one. `starts`: how often a server has started
# with both.
pairing = Table(
    "pairing",
    metadata,
    Column("id", Text, primary_key=True),
    Column("starts", BigInteger, nullable=False),
)


# `identity`: the UUID, or host and PCI address for a device without one.
device = Table(
    "device",
    metadata,
    id_column(),
    Column("identity", ordered_text(), nullable=False, unique=True),
    Column("uuid", ordered_text()),
    Column("pci_address", ordered_text()),
    Column("host", ordered_text(), nullable=False),
    Column("vendor", ordered_text()),
    Column("model", ordered_text()),
    Column("memory_bytes", BigInteger),
    Column("body", Text, nullable=False),
    Column("first_ms", BigInteger, nullable=False),
    Column("last_ms", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

# `position`: the device's index on that host, as the run saw it. `used`: by the run; null: unknown.
run_device = Table(
    "run_device",
    metadata,
    Column("run_id", Integer, ForeignKey("run.id", ondelete="CASCADE"), primary_key=True),
    Column("host", ordered_text(), primary_key=True),
    Column("device_id", Integer, ForeignKey("device.id"), primary_key=True),
    Column("position", BigInteger),
    Column("used", Boolean),
    Index(None, "device_id", "run_id"),
    sqlite_with_rowid=False,
)
