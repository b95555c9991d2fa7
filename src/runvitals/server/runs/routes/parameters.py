"""Parameters that several resources share: the library, the run, keys, times, filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Path, Query
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.journal.paths import check_run_id
from runvitals.model.filter import Filter, Predicate, ReadableRuns, Term
from runvitals.model.filter_text import MAX_LENGTH, FilterError, parse
from runvitals.model.mongo_fields import BadFilter
from runvitals.model.mongo_filter import MAX_LENGTH as MAX_JSON_LENGTH
from runvitals.model.mongo_filter import parse_filters
from runvitals.model.run_state import State
from runvitals.server.http.errors import InvalidFields, answering
from runvitals.server.http.immediate import immediate
from runvitals.server.library.editable_library import EditableLibrary, StoppingLibrary
from runvitals.server.library.run_library import Library, OpenedRun, SeriesSelection
from runvitals.server.services import services_of


@immediate
def the_library(request: Request) -> Library:
    """Return the library of the application."""
    return services_of(request).library


TheLibrary = Annotated[Library, Depends(the_library)]
RunId = Annotated[str, Path(description="The full run id.", max_length=128)]
Keys = Annotated[
    list[str],
    Query(
        description="Keys or globs, may be repeated: `cpu`, `gpu.*`. All if none is given.", max_length=1000
    ),
]
Millis = Annotated[int | None, Query(ge=-(2**53), le=2**53, description="ms UTC")]
LogFrom = Annotated[
    int | None,
    Query(
        ge=-(2**53),
        le=2**53,
        description="ms UTC. Buckets get wider with the time since then, at least 20 a decade; what is older "
        "is left out.",
    ),
]
StepLimit = Annotated[float | None, Query(ge=-(2.0**53), le=2.0**53)]
MaxPoints = Annotated[int, Query(ge=2, le=10_000, description="For each series; more are put into buckets.")]


@immediate
def checked_run_id(run: RunId) -> str:
    """Return the run id of the path, or raise 404 for one that no run can have."""
    with answering(404):
        return check_run_id(run)


CheckedRunId = Annotated[str, Depends(checked_run_id)]


@immediate
def run_number(
    request: Request,
    entity: Annotated[
        str | None,
        Query(
            description="The team or user that has the run, where several have a run of this id.",
            max_length=64,
        ),
    ] = None,
) -> int | None:
    """Return the number of the run of the path, if the check of the route's permission has looked it up."""
    number: int | None = getattr(request.state, "run_number", None)
    return number


RunNumber = Annotated[int | None, Depends(run_number)]


@immediate
def project_number(request: Request) -> int | None:
    """Return the number of the project of the path; None if no check of a permission looked it up."""
    number: int | None = getattr(request.state, "project_number", None)
    return number


ProjectNumber = Annotated[int | None, Depends(project_number)]


async def opened_run(run: CheckedRunId, library: TheLibrary, number: RunNumber) -> OpenedRun:
    """Return the run of the path, or raise UnknownRun."""
    return await library.open(run, number)


TheRun = Annotated[OpenedRun, Depends(opened_run)]


@immediate
def editable_library(request: Request, library: TheLibrary) -> EditableLibrary:
    """Return the library of the application, for a request that changes something.

    A page of another site can make a browser send a form, but neither JSON nor an `Authorization` header, so
    one of them is required.

    Raises:
        HTTPException: 403 for a request that a page of another site may have sent.
    """
    assert isinstance(library, EditableLibrary)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json" and "authorization" not in request.headers:
        raise HTTPException(
            403,
            f"{request.method} {request.url.path}: send `Content-Type: application/json` or an "
            "`Authorization` header, which pages of other sites cannot",
        )
    return library


TheEditableLibrary = Annotated[EditableLibrary, Depends(editable_library)]


@immediate
def stopping_library(request: Request, library: TheEditableLibrary) -> StoppingLibrary:
    """Return the library of the application, for a request that reaches a training.

    Raises:
        HTTPException: 405 on the local page, and what `editable_library` raises.
    """
    if not isinstance(library, StoppingLibrary):
        raise HTTPException(
            405,
            f"{request.method} {request.url.path}: this server shows the journals of this machine; a "
            "shared one (`runvitals server`) can stop runs",
            {"allow": "GET"},
        )
    return library


TheStoppingLibrary = Annotated[StoppingLibrary, Depends(stopping_library)]


def selected_series(
    keys: Keys = [],  # noqa: B006
    host: Annotated[str | None, Query(description="Only of this host.")] = None,
    rank: Annotated[
        int | None,
        Query(description="Only of this rank, and of the monitor on its host.", ge=0, le=2**31 - 1),
    ] = None,
    writer: Annotated[
        str | None, Query(description="Only of this writer, or of the writers that match a glob.")
    ] = None,
    device: Annotated[
        str | None,
        Query(description="Only of this device: its index, or on a shared server its UUID or PCI address."),
    ] = None,
) -> SeriesSelection:
    """Return which series of a run are requested."""
    return SeriesSelection(tuple(keys), host, rank, writer, device)


TheSelection = Annotated[SeriesSelection, Depends(selected_series)]


def readable_runs(request: Request) -> ReadableRuns | None:
    """Return the runs that the requester may read; None for all, on a server without accounts."""
    access = services_of(request).access
    return None if access is None else access.readable_runs(request)


TheReadableRuns = Annotated[ReadableRuns | None, Depends(readable_runs)]


@immediate
def requested_place(
    readable: TheReadableRuns,
    project: Annotated[str | None, Query(description="Only of this project.")] = None,
    entity: Annotated[
        str | None, Query(description="Only of projects of this team or user.", max_length=64)
    ] = None,
    author: Annotated[str | None, Query(description="Only runs of this user.", max_length=64)] = None,
) -> Filter:
    """Return the runs that the requester may read of a project, entity or author."""
    return Filter(project, readable=readable, entity=entity, author=author)


def requested_terms(
    filter_text: Annotated[
        str,
        Query(
            alias="filter",
            description="Terms that all hold: `state:failed,crashed gpu.util<20 config.lr>=1e-3 -tag:debug`; "
            "see the guide Find runs.",
            max_length=MAX_LENGTH,
        ),
    ] = "",
    mongo_filter: Annotated[
        str,
        Query(
            description="A filter as `wandb.Api().runs` has it, as JSON, that also holds: "
            '`{"config.lr": {"$gt": 0.1}}`. `name` is the run id.',
            max_length=MAX_JSON_LENGTH,
        ),
    ] = "",
) -> tuple[Term, ...]:
    """Return the terms of both filters.

    Raises:
        InvalidFields: 422 for an invalid filter.
    """
    try:
        terms = parse(filter_text)
    except FilterError as error:
        raise InvalidFields({"filter": str(error)}) from None
    try:
        return (*terms, *parse_filters(mongo_filter))
    except BadFilter as error:
        raise InvalidFields({"mongo_filter": str(error)}) from None


def requested_filter(
    place_filter: Annotated[Filter, Depends(requested_place)],
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
        Query(
            description="Filter expressions that must hold: `config.lr > 0.1`, `summary.loss <= 2`.",
            max_length=100,
        ),
    ] = None,
    device: Annotated[
        str | None,
        Query(
            description="Only runs that used this device: its UUID, or `<host>/<PCI address>`.",
            max_length=600,
        ),
    ] = None,
    deleted: Annotated[bool, Query(description="Runs in the trash instead of the others.")] = False,
    terms: Annotated[tuple[Term, ...], Depends(requested_terms)] = (),
) -> Filter:
    """Return which runs are requested.

    Raises:
        HTTPException: 422 for an invalid filter expression.
    """
    try:
        predicates = tuple(Predicate.parse(expression) for expression in where or ())
    except ValueError as error:
        raise HTTPException(422, f"where: {error}") from None
    return replace(
        place_filter,
        states=tuple(state or ()),
        tags=tuple(tag or ()),
        text=text,
        where=predicates,
        device=device,
        deleted=deleted,
        terms=terms,
    )


TheFilter = Annotated[Filter, Depends(requested_filter)]
