"""The application over the journals of this machine, for its one user."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from fastapi import FastAPI

from runvitals.journal.paths import data_dir
from runvitals.readers.journals.run_handle import now_ms
from runvitals.server.app import application, checked_routes
from runvitals.server.artifacts.routes import local_artifacts
from runvitals.server.charts.overlay.kept_means import KeptMeans
from runvitals.server.findings.run_findings import JudgedViews
from runvitals.server.http import page
from runvitals.server.http.open_streams import OpenStreams
from runvitals.server.http.own_user import OwnUserChanges
from runvitals.server.http.response_memory import ResponseMemory
from runvitals.server.http.same_origin import SecurityHeaders
from runvitals.server.http.shown_elsewhere import LoopbackOrLink
from runvitals.server.library.local.run_library import JournalLibrary
from runvitals.server.library.run_library import Library
from runvitals.server.live.feed import RunFeeds
from runvitals.server.runs.routes import local_trash
from runvitals.server.services import Services


def create_app(
    directory: str | None = None,
    clock: Callable[[], int] = now_ms,
    static: str = page.FOLDER,
    edited: Callable[[str], None] = lambda run_id: None,
    secret: str = "",
) -> FastAPI:
    """The application over a data folder: `/api/v1/…` and the page.

    It serves this machine only: it has no accounts. It rejects requests to other host names than loopback
    without the secret, and changes by other users of the machine.

    Args:
        directory: the data folder; by default `$RUNVITALS_DIR` or the user's data home.
        clock: the time now, ms UTC.
        static: the folder of the built page.
        edited: called with the id of a run after each edit.
        secret: of the link for other names; empty: there is none.

    Example:
        >>> uvicorn.run(create_app("/data"), host="127.0.0.1", port=8900)
    """
    app = journal_app(directory or data_dir(), clock, static, edited)
    app.add_middleware(OwnUserChanges)
    app.add_middleware(LoopbackOrLink, secret=secret)
    app.add_middleware(SecurityHeaders)
    return app


def journal_app(
    directory: str,
    clock: Callable[[], int] = now_ms,
    static: str = page.FOLDER,
    edited: Callable[[str], None] = lambda run_id: None,
) -> FastAPI:
    """The same for requests of this process: nothing is checked of who makes them."""
    app = application(local_services(JournalLibrary(directory, clock, edited)), static)
    for router in (local_trash.router, local_artifacts.router):
        app.router.routes[:0] = checked_routes(router, ())
    return app


def local_services(library: Library) -> Services:
    """The services of a server without access control."""
    closing = anyio.Event()
    return Services(
        library=library,
        closing=closing,
        feeds=RunFeeds(closing),
        open_streams=OpenStreams(),
        kept_means=KeptMeans(),
        response_memory=ResponseMemory(),
        findings=JudgedViews(),
    )
