"""`/runs/groups`, `/runs.csv` and `/fields/values`: runs in groups, as a table, and what filters can name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response, StreamingResponse

from runvitals.model.completion import FIXED_CHOICES, system_choices
from runvitals.model.run import Run
from runvitals.model.run_groups import MAX_BY, RunGroup, grouped_by, sorted_groups
from runvitals.model.run_json import finite
from runvitals.server.access.permission import needs
from runvitals.server.http.csv_response import csv_text
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.listing import PageRequest, page_in_order
from runvitals.server.http.responses import INVALID_PARAMETER
from runvitals.server.http.router import Router
from runvitals.server.runs.routes import run_list_models as models
from runvitals.server.runs.routes.list_parameters import Columns, RequestedList, TheList, fields_of
from runvitals.server.runs.routes.parameters import TheFilter, TheLibrary
from runvitals.server.runs.run_lists import RunsPage

MAX_CSV_ROWS = 100_000
_ROWS_AT_ONCE = 500
_CSV_COLUMNS = (
    "id",
    "name",
    "entity",
    "project",
    "group",
    "job_type",
    "tags",
    "state",
    "exit_code",
    "signal",
    "started_ms",
    "ended_ms",
    "duration_ms",
    "author",
    "hosts",
)

router = Router()


@router.get(
    "/runs/groups",
    needs("filtered run:read"),
    response_model=models.RunGroupsSchema,
    responses=INVALID_PARAMETER,
)
async def run_groups(
    library: TheLibrary,
    run_filter: TheFilter,
    by: Annotated[
        list[str],
        Query(
            description="`project`, `entity`, `user`, `state`, `group`, `job_type`, `tag`, `host`, or "
            "fields. Without it, all runs are one group.",
            max_length=MAX_BY,
        ),
    ] = [],  # noqa: B006
    columns: Columns = [],  # noqa: B006
    sort: Annotated[
        str,
        Query(
            description="Names of `by` and `columns` (their means), `runs` or `started_ms`; `-` before one "
            "means descending.",
            max_length=1300,
        ),
    ] = "-started_ms",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str | None, Query(description="`next` of the previous page.", max_length=20)] = None,
) -> Any:
    """Runs with the same values, and statistics of their columns.

    A run with several tags or hosts is in several groups.
    """
    fields = fields_of(columns)
    try:
        names = {name: grouped_by(name) for name in by}
    except ValueError as error:
        raise InvalidFields({"by": str(error)}) from None
    with answering(422):
        groups = await library.groups(
            run_filter, tuple(names.values()), tuple(dict.fromkeys(fields.values()))
        )
        order = _order(sort, {**names, **fields})
        groups = sorted_groups(groups, tuple(names.values()), tuple(fields.values()), order)
    shown_groups = [_group(group, tuple(names), fields) for group in groups]
    return page_in_order("groups", shown_groups, PageRequest(limit, after))


def _order(sort: str, names: dict[str, str]) -> str:
    """Return the order by the names that groups have, from those that the client uses."""
    parts = [(part.startswith("-"), part.removeprefix("-")) for part in sort.split(",")]
    return ",".join(f"{'-' if descending else ''}{names.get(name, name)}" for descending, name in parts)


def _group(group: RunGroup, names: tuple[str, ...], fields: dict[str, str]) -> dict[str, Any]:
    return {
        "values": finite(dict(zip(names, group.values, strict=True))),
        "runs": group.runs,
        "states": dict(group.states),
        "started_ms": [group.first_ms, group.last_ms],
        "duration_ms": finite(asdict(group.duration_ms)),
        "columns": {name: finite(asdict(group.columns[field])) for name, field in fields.items()},
    }


@router.get(
    "/runs.csv",
    needs("filtered run:read"),
    response_class=Response,
    responses={**INVALID_PARAMETER, 200: {"content": {"text/csv": {}}}},
)
async def runs_as_csv(library: TheLibrary, run_filter: TheFilter, requested: TheList) -> Response:
    """The runs that match, one a row, with the chosen columns: at most 100,000.

    Text that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    if requested.sparklines:
        raise InvalidFields({"sparklines": "a table in CSV has no sparklines"})

    async def page(after: str | None) -> RunsPage:
        return await library.page(run_filter, requested.sort, _ROWS_AT_ONCE, after, _nothing, requested.shown)

    with answering(422):
        first = await page(None)

    async def rows() -> AsyncIterator[str]:
        yield csv_text([*_CSV_COLUMNS, *requested.fields], ())
        current, sent = first, 0
        while True:
            yield _csv_rows(current, requested)
            sent += len(current.runs)
            if current.next is None or sent >= MAX_CSV_ROWS:
                return
            current = await page(current.next)

    headers = {"cache-control": "no-store", "content-disposition": 'attachment; filename="runs.csv"'}
    return StreamingResponse(rows(), media_type="text/csv", headers=headers)


def _nothing(key: str) -> bool:
    return False


def _csv_rows(page: RunsPage, requested: RequestedList) -> str:
    names = [*_CSV_COLUMNS, *requested.fields]
    rows = []
    for run, values in zip(page.runs, page.columns, strict=True):
        chosen = {name: values.get(field) for name, field in requested.fields.items()}
        rows.append({**_csv_row(run), **chosen})
    return csv_text(None, ([row[name] for name in names] for row in rows))


def _csv_row(run: Run) -> dict[str, Any]:
    author = None if run.author is None else run.author.name or run.author.display_name
    hosts = [host.name for host in run.hosts]
    of_run = {name: getattr(run, name) for name in _CSV_COLUMNS if name not in ("author", "hosts")}
    return {**of_run, "author": author, "hosts": hosts}


@router.get(
    "/fields/values",
    needs("filtered run:read"),
    response_model=models.FieldChoicesSchema,
    responses=INVALID_PARAMETER,
)
async def field_values(library: TheLibrary, run_filter: TheFilter) -> Any:
    """List the fields of filters, with the most frequent values in the newest runs that match."""
    choices_by_name = {choice.name: choice for choice in await library.choices(run_filter)}
    fixed = [choice for choice in FIXED_CHOICES if choice.name not in choices_by_name]
    system = [choice for choice in system_choices() if choice.name not in choices_by_name]
    choices = [*fixed, *choices_by_name.values(), *system]
    return {"fields": [finite(asdict(choice)) for choice in choices]}
