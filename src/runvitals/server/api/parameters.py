"""What calls of the API are asked with: the library, the run of the path, keys, times, filters."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, HTTPException, Path, Query, Request

from runvitals.journal.paths import check_run_id
from runvitals.model.filter import Filter, Predicate
from runvitals.model.run import State
from runvitals.query.run_handle import UnknownRun
from runvitals.server.library import Chosen, Library, OpenedRun


def library(request: Request) -> Library:
    """The library of the application."""
    found: Library = request.app.state.library
    return found


TheLibrary = Annotated[Library, Depends(library)]
RunId = Annotated[str, Path(description="The full run id.", max_length=128)]
Keys = Annotated[
    list[str],
    Query(description="Keys or globs, as often as needed: `cpu`, `gpu.*`. All without one.", max_length=1000),
]
Millis = Annotated[int | None, Query(ge=-(2**53), le=2**53, description="ms UTC")]
MaxPoints = Annotated[int, Query(ge=2, le=10_000, description="For each series; more are put into buckets.")]


async def opened(run: RunId, runs: TheLibrary) -> OpenedRun:
    """The run of the path.

    Raises:
        HTTPException: 404 with what there is instead.
    """
    try:
        check_run_id(run)
        return await runs.open(run)
    except (UnknownRun, ValueError) as error:
        raise HTTPException(404, str(error)) from None


TheRun = Annotated[OpenedRun, Depends(opened)]


def chosen(
    keys: Keys = [],  # noqa: B006
    host: Annotated[str | None, Query(description="Only of this host.")] = None,
    rank: Annotated[
        int | None, Query(description="Only of this rank, and of the monitor on its host.", ge=0, le=2**31)
    ] = None,
    writer: Annotated[str | None, Query(description="Only of this writer, or of those a glob names.")] = None,
    device: Annotated[
        str | None,
        Query(description="Only of this device: its index, or on a shared server its UUID or PCI address."),
    ] = None,
) -> Chosen:
    """Which series of a run are asked for."""
    return Chosen(tuple(keys), host, rank, writer, device)


TheChosen = Annotated[Chosen, Depends(chosen)]


def filtered(
    project: Annotated[str | None, Query(description="Only of this project.")] = None,
    state: Annotated[list[State] | None, Query(description="Only in these states.")] = None,
    tag: Annotated[
        list[str] | None, Query(description="Only with all of these tags.", max_length=100)
    ] = None,
    text: Annotated[
        str,
        Query(
            description="Every word of it occurs in the id, name, group, job type, tags, notes or "
            "configuration values.",
            max_length=1000,
        ),
    ] = "",
    where: Annotated[
        list[str] | None,
        Query(description="Comparisons that hold: `config.lr > 0.1`, `summary.loss <= 2`.", max_length=100),
    ] = None,
    device: Annotated[
        str | None,
        Query(description="That used this device: its UUID, or `<host>/<PCI address>`.", max_length=600),
    ] = None,
    deleted: Annotated[bool, Query(description="Runs in the trash, instead of the others.")] = False,
) -> Filter:
    """Which runs are asked for.

    Raises:
        HTTPException: 422 for a comparison that is none.
    """
    try:
        predicates = tuple(Predicate.parse(one) for one in where or ())
    except ValueError as error:
        raise HTTPException(422, f"where: {error}") from None
    return Filter(project, tuple(state or ()), tuple(tag or ()), text, predicates, deleted, device)


TheFilter = Annotated[Filter, Depends(filtered)]
