"""`/compare`: some runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.filter import Filter, Labelled, Term, TextPattern
from runvitals.model.run import Run
from runvitals.model.run_json import run_as_dict
from runvitals.model.run_sort import RunSort
from runvitals.server.access.permission import needs
from runvitals.server.charts.routes.overlay import MAX_RUNS, ThePlace, TheRuns
from runvitals.server.compare.comparison import SYSTEM_STATISTICS, compared_facts, statistics
from runvitals.server.compare.routes import compare_models
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import Library, NamedRun, RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheLibrary
from runvitals.server.runs.run_lists import ShownColumns

_ROW_FIELDS = tuple(name for name in models.RunRowSchema.model_fields if name != "may")

router = Router()


@router.get(
    "/compare",
    response_model=compare_models.ComparedRuns,
    responses=INVALID_PARAMETER,
    dependencies=[needs("filtered run:read")],
)
async def compare(request: Request, library: TheLibrary, requested: TheRuns, place: ThePlace) -> Response:
    """In which facts some runs differ (configuration, hardware, packages, git), and their statistics."""
    now_ms = library.clock()

    def read(_: NamedRun, view: RunView) -> Run:
        return view.run(now_ms)

    runs = list((await requested.read(read, quick=True)).values())
    system = await _system_statistics(library, runs, place)

    def encode() -> bytes:
        facts, left_out = compared_facts(runs)
        rows = [run_as_dict(run) for run in runs]
        return json_bytes(
            {
                "runs": [{name: row[name] for name in _ROW_FIELDS} for row in rows],
                "missing": requested.as_json()["missing"],
                "facts": [asdict(fact) for fact in facts],
                "left_out": left_out,
                "statistics": [asdict(row) for row in statistics(runs, system)],
            }
        )

    return await json_response(request, await run_in_threadpool(encode))


async def _system_statistics(
    library: Library, runs: Sequence[Run], place: Filter
) -> dict[str, dict[str, float | str]]:
    """Return the system statistics of runs, by run id."""
    if not runs:
        return {}
    ids = Term(Labelled("id", tuple(TextPattern(run.id) for run in runs)))
    shown = ShownColumns(tuple(SYSTEM_STATISTICS))
    run_filter = replace(place, terms=(ids,))
    page = await library.page(run_filter, RunSort(), MAX_RUNS, None, lambda key: False, shown)
    return {run.id: columns for run, columns in zip(page.runs, page.columns, strict=True)}
