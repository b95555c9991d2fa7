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
    pieces: list[PrintedPiece]


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
