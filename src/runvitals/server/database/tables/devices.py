"""The tables of devices, and of the runs that had them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, Table, Text

from runvitals.server.database.table_base import id_column, metadata, ordered_text

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
