"""The JSON bodies of `/overlay/groups`."""

from __future__ import annotations

from pydantic import Field

from runvitals.server.http.bodies import ResponseBody


class ChartGroup(ResponseBody):
    """Runs with the same values."""

    values: dict[str, str | float | None] = Field(
        description="By the names in `by`; None where the runs have no value."
    )
    runs: int = Field(description="How many runs are in it.")


class GroupMeans(ResponseBody):
    """One metric of a group. A run counts in every bucket from its first to its last value."""

    group: int = Field(description="Its place in `groups`.")
    runs: int = Field(description="How many runs of the group have the metric.")
    x: list[float] = Field(description="Where the buckets begin.")
    y: list[float] = Field(description="The mean of the runs, whose values are means of a bucket.")
    min: list[float] = Field(description="The lowest of the runs.")
    max: list[float] = Field(description="The highest of the runs.")
    n: list[int] = Field(description="How many runs there are at this place.")


class GroupedKey(ResponseBody):
    """The lines of one key."""

    key: str
    width: float = Field(description="Width of the buckets, which begin at multiples of it.")
    lines: list[GroupMeans]


class GroupedOverlay(ResponseBody):
    """Means of groups of runs on one axis."""

    x: str
    groups: list[ChartGroup] = Field(description="The largest first, at most 50.")
    left_out_groups: int
    runs: int = Field(description="How many runs the lines are of.")
    running: int = Field(description="How many of them are running.")
    older_runs: int = Field(description="Runs that match too but are older than the newest 2,000.")
    unread_runs: int = Field(
        description="Runs that were not read for lack of time: the same request again reads on."
    )
    keys: list[GroupedKey]
    problems: list[str] = Field(description="Parts of these series that could not be read.")
