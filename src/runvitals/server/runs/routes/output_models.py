"""The JSON bodies of what runs print, and of why they failed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from runvitals.model.run_state import State
from runvitals.server.http.bodies import ResponseBody


class PrintedPiece(ResponseBody):
    """A piece of the output."""

    time_ms: int
    stream: Literal["stdout", "stderr"]
    text: str
    host: str
    rank: int | None


class ConsoleAnswer(ResponseBody):
    """The newest output of a run."""

    cut: bool = Field(description="Older output is only in the journal.")
    more: bool = Field(description="There is newer output, where that around a time was requested.")
    pieces: list[PrintedPiece]


class ConsoleMatchSchema(ResponseBody):
    """A line that matches, without control characters."""

    time_ms: int
    host: str
    rank: int | None
    number: int = Field(description="Of the line in the output of its process, from 0.")
    stream: Literal["stdout", "stderr"]
    text: str
    before: list[str] = Field(description="The lines before it that the same process printed.")
    after: list[str]


class ConsoleMatchesAnswer(ResponseBody):
    """Lines that match, the newest first."""

    matches: list[ConsoleMatchSchema]
    total: int
    next: str | None = Field(description="The `after` of the next page; None on the last.")
    searched: int = Field(description="Characters.")
    complete: bool = Field(description="False if a search takes too long, or has too much to read.")


class PrintedLineSchema(ResponseBody):
    """A line of the output, without control characters and secrets."""

    time_ms: int
    stream: Literal["stdout", "stderr"]
    text: str


class FailureSchema(ResponseBody):
    """Why a run failed."""

    state: State = Field(description="`running` if a rank has failed and others have not ended.")
    title: str = Field(description="The reason on one line.")
    exception: str | None = Field(description="The name of the exception's class.")
    message: str | None = Field(description="What the exception says; may have several lines.")
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None
    host: str | None = Field(description="Of the process that failed first, as are exit code and signal.")
    rank: int | None
    time_ms: int | None = Field(description="When that process ended.")
    lines: list[PrintedLineSchema] = Field(description="What it printed last, at most 20 lines.")
    hint: str | None = Field(description="How to record more, where the reason is not known.")
