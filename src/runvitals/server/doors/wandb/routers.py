"""The routes of this door."""

from __future__ import annotations

from runvitals.server.doors.wandb import artifact_files, file_reads, routes, uploads
from runvitals.server.http.router import Router

router = Router()
for part in (routes, artifact_files, uploads, file_reads):
    router.include_router(part.router)
