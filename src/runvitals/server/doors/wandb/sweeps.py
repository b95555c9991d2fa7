"""Sweeps, which are not supported yet: what there is to say about them to clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.resolvers import Resolvers
from runvitals.server.doors.wandb.run_nodes import ProjectNode

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info

SWEEPS: Final = Resolvers("sweeps")
_REFUSED: Final = "sweeps are not supported by this server yet"


@SWEEPS.field("Mutation", "upsertSweep")
@SWEEPS.field("Mutation", "createAgent")
@SWEEPS.field("Mutation", "agentHeartbeat")
async def change(_: None, info: Info, input: dict[str, Any]) -> None:
    """No sweep can be made or run."""
    raise InvalidArgument(_REFUSED)


@SWEEPS.field("Project", "sweep")
async def sweep(node: ProjectNode, info: Info, sweep_name: str) -> None:
    """No sweep can be read."""
    raise InvalidArgument(_REFUSED)


@SWEEPS.field("Project", "totalSweeps")
async def total(node: ProjectNode, info: Info) -> int:
    """There are none."""
    return 0


@SWEEPS.field("Project", "sweeps")
async def sweeps(
    node: ProjectNode,
    info: Info,
    after: str | None = None,
    first: int | None = None,
    filters: str | None = None,
) -> dict[str, Any]:
    """There are none."""
    nothing = {"endCursor": None, "hasNextPage": False, "hasPreviousPage": False, "startCursor": None}
    return {"edges": [], "pageInfo": nothing}
