"""What users are notified about runs: their own choices, those of teams, and links that mute.

Each resource is a module with a `router`, listed here.
"""

from __future__ import annotations

from fastapi import APIRouter

from runvitals.server.api.alerts import mute, own_slack, personal, rules, team, trial_messages

router = APIRouter(prefix="/api/v1")
for resource in (personal, own_slack, team, trial_messages, mute, rules):
    router.include_router(resource.router)
