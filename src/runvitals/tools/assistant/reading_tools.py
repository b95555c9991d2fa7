"""The tools of assistants that read runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Annotated, Any

from mcp.server.mcpserver import Context
from pydantic import Field

from runvitals.tools import guides
from runvitals.tools.assistant.bounded_answer import MOST_CHARACTERS, answer
from runvitals.tools.assistant.requests import api_of
from runvitals.tools.assistant.runs_api import named_run

RunName = Annotated[
    str, Field(description="Run id, ENTITY/ID, a name that no other run has, or `latest`.", max_length=400)
]
Keys = Annotated[list[str], Field(description="Names or globs, such as `gpu.*`. Empty: all.", max_length=50)]
Points = Annotated[
    int, Field(description="Of each series: more samples are reduced to this many.", ge=2, le=500)
]
Millis = Annotated[int | None, Field(description="ms UTC.", ge=-(2**53), le=2**53)]
FilterText = Annotated[
    str,
    Field(
        description="Terms that all hold, such as `state:failed config.lr>=1e-3 gpu.util<20 tag:baseline`; "
        "other words are searched in names, notes, tags and configurations.",
        max_length=4000,
    ),
]
_SUMMARY_VALUES = 15
_EVENTS = 20
_LOG_PIECES_CHARACTERS = MOST_CHARACTERS // 2
_FEWEST_POINTS = 10
_NEWEST_RUN = ("id", "entity", "project", "name", "state", "started_ms")


async def list_projects(
    ctx: Context,
    words: Annotated[str, Field(description="Words of `entity/name`.", max_length=200)] = "",
    limit: Annotated[int, Field(ge=1, le=200)] = 50,
) -> str:
    """List the projects that have runs, the one with the newest run first."""
    query = [("text", words or None), ("limit", limit)]
    projects = await api_of(ctx).call("GET", "/projects", {}, None, query)
    full = "there may be more: raise limit, or give words" if len(projects) == limit else ""
    return answer([{**each, "newest_run": _time(each.pop("newest_ms"))} for each in projects], full)


async def list_runs(
    ctx: Context,
    filter: FilterText = "",
    project: Annotated[str | None, Field(description="Only of this project.", max_length=256)] = None,
    sort: Annotated[
        str,
        Field(
            description="`-started_ms`, `duration_ms`, `summary.loss` …; `-` is descending.", max_length=400
        ),
    ] = "-started_ms",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    after: Annotated[str | None, Field(description="The `next` of the page before.", max_length=4000)] = None,
) -> str:
    """List and search runs: states, times, tags, what they logged last, and what is wrong with them."""
    query = [("filter", filter or None), ("project", project), ("sort", sort), ("descending", "false")]
    page = await api_of(ctx).call("GET", "/runs", {}, None, [*query, ("limit", limit), ("after", after)])
    rows = [_row(row) for row in page["runs"]]
    more = "call list_runs again with after = `next`" if page["next"] else ""
    return answer({"total": page["total"], "next": page["next"], "runs": rows}, more)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    author, verdict = row.get("author"), row.get("verdict")
    fields = {
        **{name: row.get(name) for name in ("id", "entity", "project", "name", "state")},
        "started": _time(row["started_ms"]),
        "duration_s": row["duration_ms"] // 1000,
        "author": author and author["name"],
        "tags": row["tags"],
        "notes": row.get("notes"),
        "summary": dict(list(row["summary"].items())[:_SUMMARY_VALUES]),
        "verdict": verdict and verdict["text"],
    }
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _time(time_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"{time_ms} ms UTC"


async def show_run(ctx: Context, run: RunName) -> str:
    """Show a run: configuration, summary, command, machines, newest events, and why it failed."""
    called_run = await named_run(api_of(ctx), run)
    row = called_run.row
    hosts = [
        {name: host.get(name) for name in ("name", "state", "exit_code", "signal", "out_of_memory")}
        for host in row["hosts"]
    ]
    data = {
        **_row(row),
        **{name: row.get(name) for name in ("group", "job_type", "command", "notes", "config", "summary")},
        "hosts": hosts,
        "machines": row["machines"],
        "events": [{**event, "time": _time(event["time_ms"])} for event in row["events"][-_EVENTS:]],
        "failure": await called_run.get("/failure"),
        "may": row["may"],
    }
    return answer(data, "list_metrics, read_history, findings and search_logs show the rest")


async def list_metrics(ctx: Context, run: RunName, keys: Keys = []) -> str:  # noqa: B006
    """List what was measured of a run (`sampled`, with units) and what its program logged (`logged`)."""
    called_run = await named_run(api_of(ctx), run)
    about = ("key", "host", "unit", "chart", "n", "min", "max", "last")
    series = await called_run.get("/series", keys=keys)
    names = await called_run.get("/history/names", keys=keys)
    table = {"columns": about, "rows": [[each[name] for name in about] for each in series]}
    return answer({"sampled": table, "logged": names}, "give keys, such as `gpu.*`, for some of them")


async def read_metrics(
    ctx: Context,
    run: RunName,
    keys: Annotated[
        list[str], Field(description="Keys or globs: `cpu`, `gpu.*`.", min_length=1, max_length=50)
    ],
    max_points: Points = 50,
    t0: Millis = None,
    t1: Millis = None,
) -> str:
    """Read what was measured of a run's machines over time: CPU, memory, GPUs, network, energy."""
    called_run = await named_run(api_of(ctx), run)

    async def read(points: int) -> str:
        page = await called_run.get("/metrics", keys=keys, t0=t0, t1=t1, max_points=points)
        groups = [_table(group, ("t",), ("host", "role")) for group in page["groups"]]
        data = {"t0": page["t0"], "t1": page["t1"], "bucket_ms": page["bucket_ms"], "groups": groups}
        return answer(data, "t is in ms UTC: give t0 and t1 to see a part in detail")

    return await _fitting(read, max_points)


async def read_history(
    ctx: Context,
    run: RunName,
    keys: Keys = [],  # noqa: B006
    max_points: Points = 50,
    first_step: Annotated[float | None, Field(ge=-(2.0**53), le=2.0**53)] = None,
    last_step: Annotated[float | None, Field(ge=-(2.0**53), le=2.0**53)] = None,
) -> str:
    """Read the numbers that the program of a run logged, such as its loss, as a table by step."""
    called_run = await named_run(api_of(ctx), run)
    part = {"keys": keys, "first_step": first_step, "last_step": last_step}

    async def read(points: int) -> str:
        page = await called_run.get("/history", **part, max_points=points)
        groups = [_table(group, ("step", "t"), ("host", "rank")) for group in page["groups"]]
        others = {name: page[name] for name in ("others", "resumes", "unmatched", "problems") if page[name]}
        data = {"groups": groups, **others}
        return answer(data, "give keys, or first_step and last_step, to see a part in detail")

    return await _fitting(read, max_points)


def _table(group: Mapping[str, Any], axes: Sequence[str], about: Sequence[str]) -> dict[str, Any]:
    """Return a group of series as columns and rows."""
    columns = [*(group[axis] for axis in axes), *group["series"].values()]
    names = [*axes, *group["series"]]
    return {
        **{name: group[name] for name in about},
        "columns": names,
        "rows": [list(row) for row in zip(*columns, strict=True)],
    }


async def _fitting(read: Callable[[int], Awaitable[str]], points: int) -> str:
    """Return an answer with as many points as have room in it."""
    while True:
        text = await read(points)
        if "[left out:" not in text or points <= _FEWEST_POINTS:
            return text
        points //= 2


async def findings(ctx: Context, run: RunName) -> str:
    """Say what is wrong with a run, since when, with the evidence, what it costs and what to do."""
    called_run = await named_run(api_of(ctx), run)
    body = await called_run.get("/findings")
    for finding in body["findings"]:
        finding["from"] = _time(finding["from_ms"])
    return answer(body, "read_metrics shows the series of the evidence between from_ms and to_ms")


async def search_logs(
    ctx: Context,
    run: RunName,
    words: Annotated[str, Field(description="Lines with this text, in any case.", max_length=500)] = "",
    regex: Annotated[str, Field(description="Lines in which this is found (RE2).", max_length=500)] = "",
    context: Annotated[int, Field(description="Lines before and after each.", ge=0, le=20)] = 5,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    after: Annotated[str, Field(description="The `next` of the page before.", max_length=500)] = "",
) -> str:
    """Find lines of a run's output, the newest first; without words and regex: those that report errors."""
    called_run = await named_run(api_of(ctx), run)
    query: dict[str, Any] = {"words": words or None, "regex": regex or None, "after": after or None}
    if not words and not regex:
        query["errors"] = "true"
    page = await called_run.get("/console/matches", **query, context=context, limit=limit)
    more = "read_logs with around_ms = `time_ms` shows more around a line"
    if page["next"]:
        more += "; call search_logs again with after = `next` for older lines"
    return answer(page, more)


async def read_logs(
    ctx: Context,
    run: RunName,
    around_ms: Annotated[
        int | None, Field(description="ms UTC: what was printed around then, instead of the newest.")
    ] = None,
    characters: Annotated[int, Field(ge=100, le=_LOG_PIECES_CHARACTERS)] = 6000,
) -> str:
    """Read what a run printed last, or around a time."""
    called_run = await named_run(api_of(ctx), run)
    page = await called_run.get("/console", max_bytes=characters, around_ms=around_ms)
    texts = [
        {"time_ms": piece["time_ms"], "stream": piece["stream"], "rank": piece["rank"], "text": piece["text"]}
        for piece in page["pieces"]
    ]
    more = "search_logs finds older output" if page["cut"] else ""
    return answer({"older_left_out": page["cut"], "newer_left_out": page["more"], "pieces": texts}, more)


async def compare_runs(
    ctx: Context, runs: Annotated[list[RunName], Field(min_length=2, max_length=20)]
) -> str:
    """Compare runs: facts in which they differ (configuration, hardware, packages, git), and results."""
    api = api_of(ctx)
    called_runs = [await named_run(api, run) for run in runs]
    page = await api.call("GET", "/compare", {}, None, [("runs", [each.id for each in called_runs])])
    page["runs"] = [_row(row) for row in page["runs"]]
    page["facts"] = [fact for fact in page["facts"] if fact["differs"]]
    return answer(page, "read_history shows the courses of single runs")


async def read_guide(
    ctx: Context,
    topic: Annotated[
        str, Field(description="Such as `filters`. Empty: list or search.", max_length=200)
    ] = "",
    words: Annotated[str, Field(description="Pages that have all of these.", max_length=200)] = "",
) -> str:
    """Read the documentation of runvitals: a page about a topic, those with some words, or what there is."""
    if topic:
        return answer(guides.guide(topic).text)
    if words:
        matches = guides.search(words)
        return answer([[match.guide.topic, match.guide.title, match.excerpt] for match in matches])
    return answer([[page.topic, page.title] for page in guides.guides()])


async def usage(
    ctx: Context,
    month: Annotated[
        str | None, Field(description="Such as 2026-11; default: this month.", max_length=10)
    ] = None,
    by: Annotated[
        str,
        Field(
            description="Some of day, month, team, project, author, model, separated by commas.",
            max_length=200,
        ),
    ] = "project",
    entity: Annotated[str | None, Field(description="Only this team or user.", max_length=64)] = None,
    own: Annotated[bool, Field(description="Only your own runs, which you may always ask for.")] = True,
) -> str:
    """Report what runs used in a month (hours, energy, storage) and what it cost."""
    query = [("month", month), ("by", by), ("entity", entity), ("author", "me" if own else None)]
    report = await api_of(ctx).call("GET", "/usage", {}, None, query)
    return answer(report, "by, entity and month choose other parts")
