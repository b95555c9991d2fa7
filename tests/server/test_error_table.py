"""What an error means to a client is said once, for each form of response."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from fastapi import HTTPException

import runvitals.server
from runvitals.base.deadline import ClientLeft, TooSlow
from runvitals.model.errors import AmbiguousName, UnknownRun
from runvitals.server.doors.mlflow.errors import error_response
from runvitals.server.error_table import FAILED, STATUSES, meaning_of
from runvitals.server.http.request_errors import HttpRejection
from runvitals.server.http.workers import Busy
from runvitals.store.errors import (
    DeletedMeanwhile,
    MetadataStoreUnavailable,
    NameTaken,
    NoLongerValid,
    NotAllowed,
    NotFound,
    StoreError,
)

SERVER: Final = Path(runvitals.server.__file__).parent


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (NotFound("there is no price 7"), 404, "there is no price 7"),
        (NotAllowed("the administrators must be asked"), 404, "the administrators must be asked"),
        (UnknownRun("there is no run 'abc'"), 404, "there is no run 'abc'"),
        (NameTaken("the name is taken"), 409, "the name is taken"),
        (DeletedMeanwhile("FOREIGN KEY"), 404, "what this request is about was deleted a moment ago"),
        (NoLongerValid("the link was used"), 410, "the link was used"),
        (HTTPException(403, "you may not do this"), 403, "you may not do this"),
        (HttpRejection(413, "too large"), 413, "too large"),
    ],
)
def test_the_text_of_a_refusal_is_told(error: Exception, status: int, text: str) -> None:
    assert meaning_of(error) == (status, text, {})


@pytest.mark.parametrize(
    ("error", "retry_after"),
    [
        (Busy("busy"), "1"),
        (StoreError("/data"), "5"),
        (OSError("disk"), "5"),
        (HttpRejection(429, "", None, 3), "3"),
    ],
)
def test_what_may_pass_says_when_to_retry(error: Exception, retry_after: str) -> None:
    assert meaning_of(error).headers == {"retry-after": retry_after}


def test_what_the_database_says_stays_in_the_log() -> None:
    error = MetadataStoreUnavailable("postgresql://user@db.example refused the connection")
    assert (meaning_of(error).status, "db.example" in meaning_of(error).text) == (503, False)


def test_an_error_of_the_server_itself_is_not_told() -> None:
    assert meaning_of(KeyError("secret")) == (
        FAILED,
        "the server failed to answer this request: see its log",
        {},
    )


def test_a_client_that_left_is_no_slow_request() -> None:
    assert (meaning_of(ClientLeft()).status, meaning_of(TooSlow()).status) == (499, 503)


def test_mlflow_clients_get_the_same_statuses() -> None:
    for error in (NotFound("x"), UnknownRun("x"), AmbiguousName("x", ("a", "b")), Busy("x"), TooSlow()):
        assert error_response(error).status_code == meaning_of(error).status


def test_every_kind_has_a_status_of_an_error() -> None:
    assert {status for status in STATUSES.values() if not 400 <= status < 600} == set()


def test_who_catches_refusals_catches_those_of_decisions_too() -> None:
    """Decisions raise Starlette's exception, of which FastAPI's is a subclass."""
    catching = [path for path in SERVER.rglob("*.py") if "except HTTPException" in path.read_text("utf-8")]
    assert catching
    for path in catching:
        assert "from starlette.exceptions import HTTPException" in path.read_text("utf-8"), path
