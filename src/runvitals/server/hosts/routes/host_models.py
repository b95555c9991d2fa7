"""The JSON bodies of `/hosts`."""

from __future__ import annotations

from pydantic import Field

from runvitals.model.run_state import State
from runvitals.server.hosts.hosts import Flag, HostState
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.runs.routes.models import Number, RunAuthorSchema


class HostRunSchema(ResponseBody):
    """A run on a host; times and state are those of its part on this host."""

    id: str
    entity: str | None
    project: str
    name: str
    author: RunAuthorSchema | None
    state: State
    started_ms: int
    last_ms: int = Field(description="Of its newest record.")
    devices: list[int] | None = Field(description="Indexes of the devices that it used; None: not known.")


class FleetDeviceSchema(ResponseBody):
    """A device as it is now. None: not known."""

    kind: str = Field(description="`gpu`, `tpu`, `trn` or `ipu`: the beginning of its keys.")
    index: str
    model: str | None
    memory_bytes: int | None
    use: Number = Field(description="%")
    memory: Number = Field(description="Used share of its memory, %.")
    memory_used_bytes: Number
    power: Number = Field(description="W")
    power_limit: Number = Field(description="W")
    temperature: Number = Field(description="°C")
    in_use: bool | None = Field(description="Whether a run uses it.")
    runs: list[str] = Field(description="Ids of the runs that use it.")
    flags: list[Flag]


class FleetHostSchema(ResponseBody):
    """A host as it is now."""

    name: str
    state: HostState = Field(
        description="`running`: a run is on it; `lost`: its newest run was lost; `ended`: its newest run "
        "has ended."
    )
    last_ms: int = Field(description="Of its newest record.")
    runs: list[HostRunSchema] = Field(description="Those on it now; otherwise its newest one.")
    cpu: Number = Field(description="%")
    memory: Number = Field(description="%")
    devices: list[FleetDeviceSchema]
    flags: list[Flag] = Field(description="Its own and those of its devices.")


class FleetTotals(ResponseBody):
    """Of all hosts that match, on all pages."""

    running: int
    lost: int
    ended: int
    devices: int = Field(description="Of hosts on which a run is running.")
    use: Number = Field(description="Mean of these devices, %.")
    power: Number = Field(description="Sum of these devices, W; None: none reports it.")
    idle: int = Field(description="Devices.")
    throttled: int
    hot: int


class FleetPage(ResponseBody):
    """A page of the hosts."""

    hosts: list[FleetHostSchema]
    total: int = Field(description="Hosts that match, on all pages.")
    next: str | None
    totals: FleetTotals


class HostDetail(ResponseBody):
    """A host and the runs that were on it."""

    host: FleetHostSchema | None = Field(description="As it is now; None without a record for 7 days.")
    name: str
    t0: int
    t1: int
    runs: list[HostRunSchema] = Field(description="The newest first.")
    next: str | None


class HostLine(ResponseBody):
    """A series of a host in buckets."""

    key: str
    t: list[int] = Field(description="Starts of the buckets that have values, ms UTC.")
    value: list[Number] = Field(description="The statistic that the metric defines (`merge`).")
    min: list[Number]
    max: list[Number]


class HostSeries(ResponseBody):
    """Series of a host, over all runs that recorded them."""

    t0: int
    t1: int
    bucket_ms: int
    left_out: int = Field(description="Runs that were not read: only the newest are.")
    series: list[HostLine]
