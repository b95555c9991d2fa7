"""Registers the writers and keys of the envelopes of a request.

All of them together, because each commit waits for the disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from runvitals.server.ingest.envelope import AdmittedEnvelope
from runvitals.server.ingest.heartbeats import Heartbeats
from runvitals.server.ingest.validation import EnvelopeValidator, ValidEnvelope
from runvitals.server.ingest.writer_registry import KnownWriter, WriterKey, WriterRegistry, writer_key
from runvitals.server.runs.storage.metrics import KeyList


@dataclass(slots=True)
class RegisteredEnvelope:
    """An envelope whose writer is registered.

    Args:
        deleted: its run is in the trash, or was deleted for good.
        newly: if it is the first envelope of its writer: with which rights the writer was registered.
        sent_keys: the list of its keys.
        stored_keys: the list its samples are stored under.
        has_new_keys: whether it is the first envelope of its writer with this list.
    """

    valid: ValidEnvelope
    writer: KnownWriter
    deleted: bool
    newly: AdmittedEnvelope | None = None
    sent_keys: KeyList | None = None
    stored_keys: KeyList | None = None
    has_new_keys: bool = False

    @property
    def has_step(self) -> bool:
        """Return whether its columns include the step."""
        return self.valid.columns is not None and self.valid.columns.has_step

    def find_keys(self) -> bool:
        """Set the lists of its keys; False if they must be registered."""
        keys = self.valid.keys
        if keys is None or self.deleted:
            return True
        if not isinstance(keys, KeyList):
            return False
        self.sent_keys, self.stored_keys = keys, self.writer.stored_as.get((keys.id, self.has_step))
        return self.stored_keys is not None


class EnvelopeRegistration:
    """Registers what envelopes need before they can be stored."""

    def __init__(self, writers: WriterRegistry, heartbeats: Heartbeats, validator: EnvelopeValidator) -> None:
        self._writers = writers
        self._heartbeats = heartbeats
        self._validator = validator

    async def register(
        self, envelopes: Sequence[ValidEnvelope], admitted: Sequence[AdmittedEnvelope], now_ms: int
    ) -> list[RegisteredEnvelope]:
        """Register the writers and keys of the envelopes of a request. Durable."""
        keys = [writer_key(valid.envelope, rights) for valid, rights in zip(envelopes, admitted, strict=True)]
        writers: dict[WriterKey, KnownWriter] = {}
        new: dict[WriterKey, tuple[ValidEnvelope, AdmittedEnvelope]] = {}
        for key, valid, rights in zip(keys, envelopes, admitted, strict=True):
            writer = self._writers.find(valid.envelope, rights)
            if writer is None:
                new.setdefault(key, (valid, rights))
            else:
                writers[key] = writer
        if new:
            writers |= await self._register_writers(new, now_ms)
        deleted = self._heartbeats.deleted
        registered = []
        for key, valid in zip(keys, envelopes, strict=True):
            stored = writers[key].registered
            entry = RegisteredEnvelope(valid, writers[key], stored.purged or stored.run_id in deleted)
            if key in new:
                _, entry.newly = new.pop(key)
            registered.append(entry)
        await self._register_keys([entry for entry in registered if not entry.find_keys()])
        return registered

    async def _register_writers(
        self, new: dict[WriterKey, tuple[ValidEnvelope, AdmittedEnvelope]], now_ms: int
    ) -> dict[WriterKey, KnownWriter]:
        """Register writers, each by its first envelope."""
        registered = await asyncio.gather(
            *(
                self._writers.register(valid.envelope, rights, valid.oldest_ms(now_ms), now_ms)
                for valid, rights in new.values()
            )
        )
        for writer in registered:
            if writer.registered.deleted:
                self._heartbeats.add_deleted(writer.registered.run_id)
        return dict(zip(new, registered, strict=True))

    async def _register_keys(self, new: list[RegisteredEnvelope]) -> None:
        if not new:
            return
        lists = await asyncio.gather(
            *(
                self._writers.register_keys(envelope.writer, envelope.valid.keys or (), envelope.has_step)
                for envelope in new
            )
        )
        for envelope, (sent, stored) in zip(new, lists, strict=True):
            envelope.sent_keys, envelope.stored_keys, envelope.has_new_keys = sent, stored, True
            if envelope.valid.sent_keys:
                self._validator.cache_keys(envelope.valid.sent_keys, envelope.valid.keys_bytes, sent)
