"""`/overlay/groups`: the means of groups of all runs that match a filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.responses import Response

from runvitals.base import deadline
from runvitals.model.run_groups import MAX_BY, grouped_by
from runvitals.server.access.permission import needs
from runvitals.server.charts.overlay.axis import METRIC, Axis, Extract, Scale, scale_of_width
from runvitals.server.charts.overlay.group_members import GroupedRuns, group_runs
from runvitals.server.charts.overlay.group_reading import (
    GroupReading,
    MeansSource,
    logged_means,
    system_means,
)
from runvitals.server.charts.overlay.run_means import GroupLine, RunMeans, group_line, shared_width
from runvitals.server.charts.routes import group_models as models
from runvitals.server.charts.routes.overlay import Place, TheScale, in_time, requested_axis, requested_part
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.immediate import immediate
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import NamedRun
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary
from runvitals.server.services import services_of

router = Router(prefix="/overlay/groups", responses=INVALID_PARAMETER)
MAX_SHOWN = 50
"""Groups in one response."""
MAX_KEYS = 20

By = Annotated[
    list[str],
    Query(
        description="As of `/runs/groups`: `project`, `state`, `tag`, …, or fields. Without it, all runs are "
        "one group.",
        max_length=MAX_BY,
    ),
]


@dataclass(frozen=True, slots=True)
class RequestedGroups:
    """The groups that a request names, with the runs of those that are shown."""

    by: tuple[str, ...]
    grouped: GroupedRuns
    runs: list[NamedRun]

    def lines(self, means: Mapping[str, RunMeans], scale: Scale) -> Iterator[GroupLine]:
        """Yield the line of each group that has values, from the means of runs by id."""
        for number, group in enumerate(self.grouped.groups[:MAX_SHOWN]):
            line = group_line(number, [means[run] for run in group.runs if run in means], scale)
            if line is not None:
                yield line

    def as_json(self, unread: int) -> dict[str, Any]:
        """Return the fields of `models.GroupedOverlay` about the groups and the runs."""
        groups = self.grouped.groups
        return {
            "groups": [
                {"values": dict(zip(self.by, group.values, strict=True)), "runs": len(group.runs)}
                for group in groups[:MAX_SHOWN]
            ],
            "left_out_groups": max(0, len(groups) - MAX_SHOWN),
            "runs": len(self.runs) - unread,
            "running": sum(run.state == "running" for run in self.runs),
            "older_runs": self.grouped.total - len(self.grouped.ids),
            "unread_runs": unread,
        }


async def requested_groups(library: TheLibrary, run_filter: TheFilter, by: By = []) -> RequestedGroups:  # noqa: B006
    """Return the groups of the runs that match, or raise InvalidFields for a name to group by."""
    try:
        names = tuple(map(grouped_by, by))
    except ValueError as error:
        raise InvalidFields({"by": str(error)}) from None
    grouped = await group_runs(library, run_filter, names)
    run_ids = {run for group in grouped.groups[:MAX_SHOWN] for run in group.runs}
    runs = await library.named([run for run in grouped.ids if run in run_ids], run_filter)
    return RequestedGroups(tuple(by), grouped, runs)


@immediate
def requested_extract(
    points: Annotated[int, Query(ge=2, le=1000, description="Of each line, at most.")] = 300,
    x0: Place = None,
    x1: Place = None,
    scale: TheScale = "linear",
) -> Extract:
    """Return which part of x is requested; `x0` and `x1` are included."""
    return requested_part(points, x0, x1, scale=scale)


TheExtract = Annotated[Extract, Depends(requested_extract)]
TheGroups = Annotated[RequestedGroups, Depends(requested_groups)]


@router.get("/logged", needs("filtered run:read"), response_model=models.GroupedOverlay)
async def group_logged(
    request: Request,
    groups: TheGroups,
    part: TheExtract,
    keys: Annotated[
        list[str], Query(description="Names that were logged.", min_length=1, max_length=MAX_KEYS)
    ],
    x: Annotated[
        str, Query(description=f"As of `/overlay/logged`; `{METRIC}<name>` too.", max_length=600)
    ] = "step",
) -> Response:
    """Logged numbers of all runs that match, as means of groups.

    A line is the mean of the runs of its group, between the lowest and the highest of them. Buckets are as
    wide as a power of two; of a logarithmic scale, in decades.
    """
    axis = requested_axis(x, "step", "relative", "wall", "metric")
    return await _response(request, groups, keys, axis, part, logged_means(axis, part))


@router.get("/system", needs("filtered run:read"), response_model=models.GroupedOverlay)
async def group_system(
    request: Request,
    groups: TheGroups,
    part: TheExtract,
    keys: Annotated[
        list[str],
        Query(
            description="Keys, globs or templates of metrics, as of `/overlay/system`.",
            min_length=1,
            max_length=MAX_KEYS,
        ),
    ],
    x: Annotated[str, Query(description="`relative` or `wall`.", max_length=600)] = "relative",
) -> Response:
    """Sampled metrics of all runs that match, as means of groups. Devices and hosts of a run are one line."""
    axis = requested_axis(x, "relative", "wall")
    with answering(422):
        source = system_means(groups.runs, keys, axis, part)
    return await _response(request, groups, keys, axis, part, source)


async def _response(
    request: Request,
    groups: RequestedGroups,
    keys: Sequence[str],
    axis: Axis,
    part: Extract,
    source: MeansSource,
) -> Response:
    """The means of groups as a response."""
    names = list(dict.fromkeys(keys))
    reading = GroupReading(services_of(request).kept_means, source)
    await reading.of_runs(groups.runs, names)

    def encode() -> bytes:
        lines = []
        for key in names:
            deadline.check()
            means = reading.means[key]
            scale = scale_of_width(axis, shared_width(list(means.values()), part), part.log)
            of_groups = [_as_json(line) for line in groups.lines(means, scale)]
            lines.append({"key": key, "width": scale.width, "lines": of_groups})
        about = groups.as_json(len(reading.unread))
        return json_bytes({"x": str(axis), **about, "keys": lines, "problems": list(reading.problems)})

    return await json_response(request, await in_time(encode))


def _as_json(line: GroupLine) -> dict[str, Any]:
    return {
        "group": line.group,
        "runs": line.runs,
        "x": line.x.tolist(),
        "y": line.y.tolist(),
        "min": line.low.tolist(),
        "max": line.high.tolist(),
        "n": line.n.tolist(),
    }
