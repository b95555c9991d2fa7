"""`/runs/{run}/console`: what a run printed last or around a time, and lines that match."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final

from fastapi import HTTPException, Query, Request
from fastapi.responses import Response

from runvitals.base import deadline
from runvitals.base.regular_expressions import MAX_LENGTH
from runvitals.readers.journals.console import KEPT_BYTES
from runvitals.server.access.permission import needs
from runvitals.server.http.responses import RUN_ERRORS, json_bytes, json_response, read_or_422
from runvitals.server.http.router import Router
from runvitals.server.library.run_library import RunView
from runvitals.server.runs import console_search
from runvitals.server.runs.console_search import ConsoleMatch, ConsoleMatches, LinePosition
from runvitals.server.runs.output_window import output_around
from runvitals.server.runs.routes.output_models import ConsoleAnswer, ConsoleMatchesAnswer
from runvitals.server.runs.routes.parameters import TheRun

_MAX_BYTES: Final = 16 << 20
_MOST_SEARCHED: Final = 1 << 30  # characters
_LEFT_S: Final = 2.0
"""So much time of a request is left for its response when a search ends."""

router = Router(responses=RUN_ERRORS)


@router.get("/runs/{run}/console", needs("run:read"), response_model=ConsoleAnswer)
async def run_console(
    request: Request,
    run: TheRun,
    max_bytes: Annotated[int, Query(ge=1, le=_MAX_BYTES, description="Of the newest output.")] = KEPT_BYTES,
    around_ms: Annotated[
        int | None, Query(description="Return the output around this time, ms UTC, instead of the newest.")
    ] = None,
) -> Response:
    """The newest output of the program, or that around a time."""

    def read(view: RunView) -> bytes:
        if around_ms is None:
            cut, pieces = view.console(max_bytes)
            more = False
        else:
            window = output_around(view.console_pieces(), around_ms, max_bytes)
            cut, more, pieces = window.cut, window.more, window.pieces()
        return json_bytes({"cut": cut, "more": more, "pieces": [piece._asdict() for piece in pieces]})

    return await json_response(
        request, await run.use(read, quick=around_ms is None and max_bytes <= KEPT_BYTES)
    )


@router.get("/runs/{run}/console/matches", needs("run:read"), response_model=ConsoleMatchesAnswer)
async def run_console_matches(
    request: Request,
    run: TheRun,
    words: Annotated[str, Query(description="Lines with this text, in any case.", max_length=500)] = "",
    regex: Annotated[
        str, Query(description="Lines in which this is found: RE2 syntax.", max_length=MAX_LENGTH)
    ] = "",
    errors: Annotated[
        bool, Query(description="Lines that report an error: tracebacks, levels of loggers, CUDA, NCCL …")
    ] = False,
    context: Annotated[
        int, Query(description="Lines before and after each match.", ge=0, le=console_search.MOST_AROUND)
    ] = 0,
    limit: Annotated[int, Query(description="The newest matches.", ge=1, le=1000)] = 200,
    after: Annotated[str, Query(description="`next` of the previous page.", max_length=500)] = "",
) -> Response:
    """Lines of the output that match, the newest first: give one of `words`, `regex` and `errors`."""
    if sum(map(bool, (words, regex, errors))) != 1:
        raise HTTPException(422, "give exactly one of `words`, `regex` and `errors`")

    def read(view: RunView) -> bytes:
        tests = {
            words: partial(console_search.contains, words),
            regex: partial(console_search.matches, regex),
        }
        test = next((make() for text, make in tests.items() if text), None) or console_search.is_error()
        matches = ConsoleMatches(limit, LinePosition.parse(after) if after else None)
        console_search.search(view.console_pieces(), test, context, matches, _ends)
        return json_bytes(_answer(matches))

    return await json_response(request, await read_or_422(run, read))


def _ends(searched: int) -> bool:
    left_s = deadline.left_s()
    return searched > _MOST_SEARCHED or deadline.has_passed() or (left_s is not None and left_s < _LEFT_S)


def _answer(found_lines: ConsoleMatches) -> dict[str, Any]:
    matches: list[ConsoleMatch] = found_lines.newest_first()
    return {
        "matches": [match._asdict() for match in matches],
        "total": found_lines.total,
        "next": str(matches[-1].position) if found_lines.has_older else None,
        "searched": found_lines.searched,
        "complete": found_lines.complete,
    }
