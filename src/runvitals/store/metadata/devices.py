"""Devices, identified by UUID, else by host and PCI address; and which runs saw and used them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, case, func, select

from runvitals.journal.json_codec import dumps, loads
from runvitals.store.metadata.database import Database, ids_of, insert
from runvitals.store.metadata.run_locks import lock_known_runs
from runvitals.store.metadata.tables import device, run_device
from runvitals.store.metadata.text import MAX_NAME, check_integers, checked_name


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """A device that a run saw on one of its hosts. None: unknown; does not overwrite a known value.

    Args:
        host: the machine.
        uuid: of the device. It stays the same when the device moves to another slot or host.
        pci_address: on that host; required if there is no UUID.
        position: its index there, as the run saw it.
        used: by the run.
        facts: other facts, a JSON object.
    """

    host: str
    uuid: str | None = None
    pci_address: str | None = None
    position: int | None = None
    used: bool | None = None
    vendor: str | None = None
    model: str | None = None
    memory_bytes: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """
        Raises:
            ValueError: neither a UUID nor a PCI address.
        """
        if not self.uuid and not self.pci_address:
            raise ValueError(f"a device of {self.host} without a UUID needs its PCI address")
        return checked_name("device", self.uuid or f"{self.host}/{self.pci_address}", 600)


class DeviceTable:
    """The table of devices that any run has seen."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, run_id: int, devices: Sequence[DeviceRecord], time_ms: int) -> None:
        """Record the devices that a run sees, or more facts about them. Durable.

        Raises:
            ValueError: a device that cannot be identified, or a value that cannot be stored.
            UnknownRun: there is no run with this id.
        """
        rows = {one.identity: _row(one, time_ms) for one in devices}
        if rows:
            self._database.write(lambda connection: _note(connection, run_id, devices, rows))

    def of_run(self, run_id: int) -> list[DeviceRecord]:
        """The devices that a run saw, by host and position."""
        statement = (
            select(device, run_device.c.host.label("seen_on"), run_device.c.position, run_device.c.used)
            .join(run_device, run_device.c.device_id == device.c.id)
            .where(run_device.c.run_id == run_id)
        )
        with self._database.read() as connection:
            found = [
                DeviceRecord(
                    host=row.seen_on,
                    uuid=row.uuid,
                    pci_address=row.pci_address,
                    position=row.position,
                    used=row.used,
                    vendor=row.vendor,
                    model=row.model,
                    memory_bytes=row.memory_bytes,
                    facts=loads(row.body),
                )
                for row in connection.execute(statement)
            ]
        return sorted(
            found, key=lambda one: (one.host, one.position is None, one.position or 0, one.identity)
        )


def devices_of(host: str, machine: Mapping[str, object]) -> list[DeviceRecord]:
    """The devices in the facts about a machine; those that cannot be stored are left out.

    Args:
        machine: as in journals. A list of maps with `uuid` or `pci` is a list of devices.

    Example:
        >>> [one.identity for one in devices_of("node1", {"gpu_nvidia": [{"index": 0, "uuid": "GPU-5"}]})]
        ['GPU-5']
    """
    found: dict[str, DeviceRecord] = {}
    for name, listed in machine.items():
        for about in listed if isinstance(listed, list) else ():
            if isinstance(about, dict) and (_text(about, "uuid") or _text(about, "pci")):
                one = _device(host, name.removeprefix("gpu_"), about)
                found[one.identity] = one
    return list(found.values())


def _device(host: str, vendor: str, about: Mapping[str, object]) -> DeviceRecord:
    used = about.get("used")
    return DeviceRecord(
        host,
        uuid=_text(about, "uuid"),
        pci_address=_text(about, "pci"),
        position=_number(about, "index"),
        used=used if isinstance(used, bool) else None,
        vendor=vendor[:MAX_NAME],
        model=_text(about, "name"),
        memory_bytes=_number(about, "memory_bytes"),
    )


def _text(about: Mapping[str, object], name: str) -> str | None:
    text = about.get(name)
    return text if isinstance(text, str) and 0 < len(text) <= MAX_NAME else None


def _number(about: Mapping[str, object], name: str) -> int | None:
    number = about.get(name)
    return number if type(number) is int and 0 <= number < 2**63 else None


def _row(one: DeviceRecord, time_ms: int) -> dict[str, Any]:
    checked_name("host", one.host)
    check_integers(f"device {one.identity}", position=one.position, memory_bytes=one.memory_bytes)
    texts = {name: getattr(one, name) for name in ("uuid", "pci_address", "vendor", "model")}
    try:
        body = dumps(one.facts).decode("ascii")
    except (TypeError, ValueError) as error:
        raise ValueError(f"the facts about device {one.identity} are not valid JSON: {error}") from None
    return {
        **{name: checked_name(name, text) if text else None for name, text in texts.items()},
        "identity": one.identity,
        "host": checked_name("host", one.host),
        "memory_bytes": one.memory_bytes,
        "body": body,
        "first_ms": time_ms,
        "last_ms": time_ms,
    }


def _note(
    connection: Connection, run_id: int, devices: Sequence[DeviceRecord], rows: dict[str, dict[str, Any]]
) -> None:
    lock_known_runs(connection, [run_id])
    statement = insert(connection, device)
    new, old = statement.excluded, device.c
    later = new.last_ms >= old.last_ms
    merged: dict[str, Any] = {
        name: case((later, func.coalesce(new[name], old[name])), else_=func.coalesce(old[name], new[name]))
        for name in ("uuid", "pci_address", "vendor", "model", "memory_bytes")
    }
    merged |= {name: case((later, new[name]), else_=old[name]) for name in ("host", "last_ms")}
    merged["body"] = case((later & (new.body != "{}"), new.body), else_=old.body)
    merged["first_ms"] = case((new.first_ms < old.first_ms, new.first_ms), else_=old.first_ms)
    statement = statement.on_conflict_do_update(index_elements=["identity"], set_=merged)
    connection.execute(statement, [rows[identity] for identity in sorted(rows)])
    numbers = ids_of(connection, device.c.identity, rows)
    seen = insert(connection, run_device)
    known = {name: func.coalesce(seen.excluded[name], run_device.c[name]) for name in ("position", "used")}
    connection.execute(
        seen.on_conflict_do_update(index_elements=["run_id", "host", "device_id"], set_=known),
        [
            {
                "run_id": run_id,
                "host": checked_name("host", one.host),
                "device_id": numbers[one.identity],
                "position": one.position,
                "used": one.used,
            }
            for one in devices
        ],
    )
