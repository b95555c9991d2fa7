"""Refuses run queues, with what to use instead: this server starts no programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

LAUNCH: Final = Resolvers("launch")
_REASON: Final = (
    "this server has no run queues, and starts no programs: let agents of a sweep start runs (`wandb agent`, "
    "`runvitals agent`), or submit jobs to Slurm or Kubernetes and log from there"
)


async def _refuse(source: Any, info: Info, **_: Any) -> NoReturn:
    raise InvalidArgument(_REASON)


for _type, _fields in {
    "Project": ("runQueue", "runQueues"),
    "Mutation": (
        "createRunQueue",
        "upsertRunQueue",
        "createDefaultResourceConfig",
        "pushToRunQueueByName",
        "pushToRunQueue",
        "createLaunchAgent",
    ),
}.items():
    for _field in _fields:
        LAUNCH.field(_type, _field)(_refuse)
