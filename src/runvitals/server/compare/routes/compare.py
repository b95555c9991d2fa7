"""`/compare`: some runs side by side."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from runvitals.model.run import Run
from runvitals.model.run_json import run_as_dict
from runvitals.server.access.permission import needs
from runvitals.server.charts.routes.overlay import TheProjectFilter, TheRuns
from runvitals.server.compare.comparison import compared_facts, goal_of_runs, statistics
from runvitals.server.compare.routes import compare_models
from runvitals.server.compare.run_rows import system_statistics
from runvitals.server.http.responses import INVALID_PARAMETER, json_bytes, json_response
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import NamedRun, RunView
from runvitals.server.runs.routes import models
from runvitals.server.runs.routes.parameters import TheLibrary

_ROW_FIELDS = tuple(name for name in models.RunRowSchema.model_fields if name != "may")

router = Router()


@router.get(
    "/compare",
    needs("filtered run:read"),
    response_model=compare_models.ComparedRuns,
    responses=INVALID_PARAMETER,
)
async def compare(
    request: Request, library: TheLibrary, requested: TheRuns, project_filter: TheProjectFilter
) -> Response:
    """In which facts some runs differ (configuration, hardware, packages, git), and their statistics."""
    now_ms = library.clock()

    def read(_: NamedRun, view: RunView) -> Run:
        return view.run(now_ms)

    runs = list((await requested.reading.each(read, quick=True)).values())
    system = await system_statistics(library, runs, project_filter)

    def encode() -> bytes:
        facts, left_out = compared_facts(runs)
        rows = [run_as_dict(run) for run in runs]
        numbers = statistics(runs, system)
        goal = goal_of_runs(runs, numbers)
        return json_bytes(
            {
                "runs": [{name: row[name] for name in _ROW_FIELDS} for row in rows],
                "missing": requested.as_json()["missing"],
                "facts": [asdict(fact) for fact in facts],
                "left_out": left_out,
                "statistics": [asdict(row) for row in numbers],
                "goal": None if goal is None else {"name": goal[0], "goal": goal[1]},
            }
        )

    return await json_response(request, await run_in_threadpool(encode))
