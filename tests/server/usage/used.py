"""Figures of runs, put into a metadata store as the roll-up puts them."""

from __future__ import annotations

from runvitals.server.events.usage_marks import ReceivedAmount, UsageMarks
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import Sender, WriterRegistration
from runvitals.server.usage.storage.figures import DeviceRunDay, HostRunDay, RunDay, StorageRow

HOUR_MS = 3_600_000
H100, A100 = "NVIDIA H100", "NVIDIA A100"


def use(
    metadata_store: MetadataStore,
    run: str,
    day: str,
    *,
    entity_id: int | None = None,
    author_id: int | None = None,
    project: str = "digits",
    hours: float = 1,
    models: tuple[str, ...] = (H100,),
    state: str = "finished",
    idle_hours: float = 0,
    joules: int = 3_600_000,
    storage_bytes: int = 0,
) -> None:
    """A run that used a device of each of some models all the time, each with so many joules."""
    sender = Sender(entity_id, author_id)
    writer = WriterRegistration(run, "monitor.node1.1", project, "monitor", "node1", sender=sender)
    (who,) = metadata_store.writers.join([writer], 1)
    figures = metadata_store.usage.figures
    owner = figures.owners([who.run_id], 1)[who.run_id]
    owner = type(owner)(who.run_id, entity_id, who.project_id, author_id, None, "", state)
    used_ms = round(hours * HOUR_MS)
    devices = [
        DeviceRunDay(
            who.run_id,
            day,
            "node1",
            number,
            model,
            True,
            used_ms,
            used_ms // 2,
            round(idle_hours * HOUR_MS),
            joules * 1000,
            0,
            0,
            0,
        )
        for number, model in enumerate(models)
    ]
    hosts = [HostRunDay(who.run_id, day, "node1", ((0, used_ms),))]
    figures.put([RunDay(owner, day, used_ms, used_ms)], hosts, devices, day)
    received = UsageMarks(received={who.run_id: ReceivedAmount(2_000_000_000, 7)}, received_on=day)
    metadata_store.usage.marks.add(received)
    if storage_bytes:
        figures.put_storage([StorageRow(day, who.project_id, "samples", entity_id, storage_bytes)])
    figures.copy_names()
