"""The writers of ours under which the lines of a wandb client are stored.

A process that logs has three: `monitor` for system metrics, facts and the end of the run, `train` for logged
rows and media, `console` for its output.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from runvitals.journal.paths import safe_name
from runvitals.model.limits import LABEL_CHARACTERS
from runvitals.server.doors import recording
from runvitals.server.doors.wandb.run_ids import ClientRun
from runvitals.server.doors.wandb.storage.clients import WandbClient
from runvitals.server.ingest.envelope import Envelope, WriterDescription

HEARTBEAT_S: Final = 30.0
"""How often a client that has nothing to send is heard of."""
MONITOR, TRAIN, CONSOLE = "monitor", "train", "console"
_UNKNOWN_HOST: Final = "unknown"


def host_name(host: str | None) -> str:
    """Return the name of a client's machine, which settings may hide."""
    return (host or "").strip()[:LABEL_CHARACTERS] or _UNKNOWN_HOST


def event_number(now_ms: int) -> int:
    """Return a number for an event of a writer that no other one has."""
    return now_ms << 10


@dataclass(frozen=True, slots=True)
class RunWriters:
    """The writers of a client in a run.

    Args:
        entity: the name of the team or user; None on a server without accounts.
    """

    run: ClientRun
    entity: str | None
    client: WandbClient

    def name(self, role: str, host: str | None = None) -> str:
        """Return the name of a writer. `host`: of system metrics that the client has from another machine."""
        host_part = safe_name(host or self.client.host)
        started = f"{self.client.started_ms:x}"
        if role == MONITOR:
            return f"{MONITOR}.{host_part}.{started}"
        digest = hashlib.sha256(self.client.client.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        return f"{role}.{host_part}.{digest if self.client.client else 0}.{started}"

    def about(self, role: str, host: str | None = None) -> WriterDescription:
        """Return the description of a writer when it is new."""
        return WriterDescription(
            role=role,
            host=host or self.client.host,
            interval_s=HEARTBEAT_S,
            started_ms=self.client.started_ms,
        )

    def records(self, role: str, entries: list[tuple[int, str, dict[str, Any]]]) -> Envelope:
        """Return an envelope with records of a writer."""
        return recording.records(
            self.run.uid,
            self.name(role),
            entries,
            project=self.run.project,
            entity=self.entity,
            about=self.about(role),
        )

    def heartbeat(self) -> Envelope:
        """Return an envelope that says that the client is alive."""
        envelope = recording.heartbeat(
            self.run.uid, self.name(MONITOR), project=self.run.project, entity=self.entity
        )
        envelope.about = self.about(MONITOR)
        return envelope
