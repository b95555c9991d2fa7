"""Devices, identified by UUID, else by host and PCI address; and which runs saw and used them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, case, func, select

from runvitals.base.json_codec import dumps
from runvitals.model.device import RunDevice
from runvitals.server.database.database import StoredTable, among, ids_of, insert
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.runs import device, run_device
from runvitals.server.database.text import check_integers, checked_name
from runvitals.server.runs.storage.run_locks import lock_known_runs

_MAX_IDENTITY = 600  # a UUID, or the names of a host and of a PCI slot


class DeviceTable(StoredTable):
    """The table of devices that any run has seen."""

    def record(self, run_id: int, devices: Sequence[RunDevice], time_ms: int) -> None:
        """Record the devices that a run sees, or more facts about them. Durable.

        Raises:
            ValueError: a device that cannot be identified, or a value that cannot be stored.
            UnknownRun: there is no run with this id.
        """
        rows = {reported.identity: _row(reported, time_ms) for reported in devices}
        if rows:
            self._database.write(lambda connection: _record(connection, run_id, devices, rows))

    def of_run(self, run_id: int) -> list[RunDevice]:
        """Return the devices that a run saw, by host and position."""
        return self.of_runs([run_id])[run_id]

    def of_runs(self, run_ids: Iterable[int]) -> dict[int, list[RunDevice]]:
        """Return the devices that runs saw, by host and position."""
        by_run: dict[int, list[RunDevice]] = {run_id: [] for run_id in run_ids}
        statement = select(
            device,
            run_device.c.run_id,
            run_device.c.host.label("seen_on"),
            run_device.c.position,
            run_device.c.used,
        ).join(run_device, run_device.c.device_id == device.c.id)
        with self._database.read() as connection:
            for row in connection.execute(statement.where(among(connection, run_device.c.run_id, by_run))):
                by_run[row.run_id].append(_device(row))
        for devices in by_run.values():
            devices.sort(key=_by_place)
        return by_run


def _device(row: Row[Any]) -> RunDevice:
    return RunDevice(
        host=row.seen_on,
        uuid=row.uuid,
        pci_address=row.pci_address,
        position=row.position,
        used=row.used,
        vendor=row.vendor,
        model=row.model,
        memory_bytes=row.memory_bytes,
        facts=stored_object(row.body, f"the device {row.model}"),
    )


def _by_place(device: RunDevice) -> tuple[str, bool, int, str]:
    return device.host, device.position is None, device.position or 0, device.identity


def _row(reported: RunDevice, time_ms: int) -> dict[str, Any]:
    checked_name("host", reported.host)
    check_integers(
        f"device {reported.identity}", position=reported.position, memory_bytes=reported.memory_bytes
    )
    texts = {name: getattr(reported, name) for name in ("uuid", "pci_address", "vendor", "model")}
    try:
        body = dumps(reported.facts).decode("ascii")
    except (TypeError, ValueError) as error:
        raise ValueError(f"the facts about device {reported.identity} are not valid JSON: {error}") from None
    return {
        **{name: checked_name(name, text) if text else None for name, text in texts.items()},
        "identity": checked_name("device", reported.identity, _MAX_IDENTITY),
        "host": checked_name("host", reported.host),
        "memory_bytes": reported.memory_bytes,
        "body": body,
        "first_ms": time_ms,
        "last_ms": time_ms,
    }


def _record(
    connection: Connection, run_id: int, devices: Sequence[RunDevice], rows: dict[str, dict[str, Any]]
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
    values = {name: func.coalesce(seen.excluded[name], run_device.c[name]) for name in ("position", "used")}
    connection.execute(
        seen.on_conflict_do_update(index_elements=["run_id", "host", "device_id"], set_=values),
        [
            {
                "run_id": run_id,
                "host": checked_name("host", reported.host),
                "device_id": numbers[reported.identity],
                "position": reported.position,
                "used": reported.used,
            }
            for reported in devices
        ],
    )
