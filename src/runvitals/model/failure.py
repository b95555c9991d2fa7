"""Why a run failed: the exception or signal, where it happened first, and what was printed last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from runvitals.model.console_text import Piece, PrintedLine, printed_lines, shown_text
from runvitals.model.ending import Ending, signal_name
from runvitals.model.run import Event, Rank
from runvitals.model.run_state import State
from runvitals.model.tracebacks import FoundException, fatal_line, find_exception

EXCEPTION: Final = "exception"
"""The name of the event with which a training records the exception that ended it."""
CONSOLE_BYTES: Final = 128 * 1024
"""How much of the newest output is read."""
MAX_LINES: Final = 20
_AFTER_FATAL: Final = 14  # lines: where the program was
_OURS: Final = "runvitals: "
"""What this package prints itself begins so."""
_KEY_BEGIN: Final = "-----BEGIN "
_KEY_END: Final = "-----END "
_POINTERS: Final = frozenset(" ^~")  # below the lines of a traceback
_MAX_LINE: Final = 300
_MAX_TITLE: Final = 400
_MAX_MESSAGE: Final = 4000
_STOPS: Final = (1, 2, 15)
_FAULTS: Final = (4, 6, 7, 8, 11)  # ILL, ABRT, BUS, FPE, SEGV
_MEANINGS: Final = {
    4: "illegal instruction",
    6: "the program or a library aborted",
    7: "bus error",
    8: "arithmetic error",
    9: "killed, by a user, a scheduler or the system",
    11: "segmentation fault",
    24: "limit of processor time exceeded",
    25: "limit of file size exceeded",
}
NOTHING_RECORDED: Final = (
    "Nothing that the program printed was recorded. runvitals.init() records what Python prints, unless "
    "console=False or RUNVITALS_CONSOLE=false; `runvitals run --console -- CMD` records all output of a "
    "command."
)
C_OUTPUT: Final = (
    "Libraries in C print past Python. To record that too, write the output to a file, or start the program "
    "with `runvitals run --console -- CMD`."
)


class OutputPiece(Piece, Protocol):
    """A record of output and the process that printed it."""

    @property
    def host(self) -> str:
        """Its host."""

    @property
    def rank(self) -> int | None:
        """Its rank."""


class EndedRun(Protocol):
    """What is needed of a run: a `Run`, or less."""

    @property
    def state(self) -> State:
        """Its state."""

    @property
    def ending(self) -> Ending:
        """How it ended."""

    @property
    def ended_ms(self) -> int | None:
        """When it ended."""

    @property
    def ranks(self) -> list[Rank]:
        """Its processes."""

    @property
    def events(self) -> list[Event]:
        """Its events, or only exceptions."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a run failed. Texts have no control characters and no secrets.

    Args:
        state: of the run, which may still be running on other ranks.
        title: the reason on one line.
        exception: the name of the exception's class.
        message: what it says, which may have several lines.
        host, rank: of the process that failed first.
        time_ms: when that process ended.
        lines: what it printed last, the exception at the end.
        hint: how to record more; None if what was recorded answers the question.
    """

    state: State
    title: str
    exception: str | None
    message: str | None
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None
    host: str | None
    rank: int | None
    time_ms: int | None
    lines: list[PrintedLine]
    hint: str | None


def has_failed(run: EndedRun) -> bool:
    """Return whether a run, or a rank of one that is running, has failed or was lost."""
    return run.state in ("failed", "crashed", "lost") or (
        run.state == "running" and _first_failed(run.ranks) is not None
    )


def failure_of(run: EndedRun, pieces: Iterable[OutputPiece], redact: Callable[[str], str]) -> Failure | None:
    """Return why a run failed; None if it has not.

    Args:
        pieces: the newest output of all its processes.
        redact: returns a text without secrets.
    """
    if not has_failed(run):
        return None
    first = _first_failed(run.ranks)
    event = _exception_event(run.events, first)
    lines, traceback = _lines_and_exception(_of_process(list(pieces), first, event))
    if traceback is None and event is not None and event.data.get("traceback"):
        printed = PrintedLine(event.time_ms, "stderr", str(event.data["traceback"]))
        lines, traceback = _lines_and_exception([printed])
    texts = [line.text for line in lines]
    exception = message = None
    if event is not None:
        exception, message = str(event.data.get("type") or ""), str(event.data.get("message") or "")
    elif traceback is not None:
        exception, message = traceback.kind, traceback.message
    fatal = fatal_line(texts) if exception is None else None
    last = traceback.last if traceback is not None else None if fatal is None else fatal[0] + _AFTER_FATAL
    rank = first.rank if first is not None else event.rank if event is not None else None
    if rank is None and traceback is not None:
        rank = traceback.rank
    return Failure(
        run.state,
        _title(run, first, exception, message, None if fatal is None else fatal[1], redact),
        exception or None,
        _multiline(redact(message))[:_MAX_MESSAGE] if message else None,
        first.exit_code if first is not None else run.ending.exit_code,
        first.signal if first is not None else run.ending.signal,
        first.out_of_memory if first is not None else run.ending.out_of_memory,
        first.host if first is not None else event.host if event is not None else None,
        rank,
        first.ended_ms if first is not None else run.ended_ms,
        _without_secrets(_last_lines(lines, last), redact),
        _hint(lines, exception or fatal, first.signal if first is not None else run.ending.signal),
    )


def _lines_and_exception(pieces: Iterable[Piece]) -> tuple[list[PrintedLine], FoundException | None]:
    """Return the lines of stderr if they say why the program ended, else those of all output."""
    lines = [
        line
        for line in printed_lines(pieces)
        if not line.text.startswith(_OURS) and not _POINTERS.issuperset(line.text)
    ]
    errors = [line for line in lines if line.stream == "stderr"]
    for candidates in (errors, lines):
        traceback = find_exception([line.text for line in candidates])
        if traceback is not None:
            begun = candidates[traceback.first]
            candidates[traceback.first] = replace(begun, text=begun.text[traceback.column :])
            return candidates, traceback
    return errors if fatal_line([line.text for line in errors]) is not None else lines, None


def _first_failed(ranks: Sequence[Rank]) -> Rank | None:
    """Return the process that failed first; one that was asked to stop only if no other failed."""
    failed = [rank for rank in ranks if rank.exit_code or rank.signal]
    return min(failed, key=lambda rank: (rank.signal in _STOPS, rank.ended_ms or 0), default=None)


def _exception_event(events: Sequence[Event], first: Rank | None) -> Event | None:
    """Return the exception that the process recorded, or else any process's first one."""
    exceptions = [event for event in events if event.name == EXCEPTION]
    own = [
        event
        for event in exceptions
        if first is not None and (event.host, event.rank) == (first.host, first.rank)
    ]
    return own[-1] if own else exceptions[0] if exceptions and first is None else None


def _of_process(
    pieces: Sequence[OutputPiece], first: Rank | None, event: Event | None
) -> Sequence[OutputPiece]:
    """Return the output of the process that failed first, or all where processes are not told apart."""
    process = first or event
    if process is None:
        return pieces
    of_host = [piece for piece in pieces if piece.host == process.host]
    own = [piece for piece in of_host if piece.rank == process.rank]
    return own or [piece for piece in of_host if piece.rank is None] or pieces


def _last_lines(lines: Sequence[PrintedLine], last: int | None) -> Sequence[PrintedLine]:
    """Return the lines up to the exception; without one the end of stderr, or of all output."""
    if last is not None:
        return lines[max(0, last + 1 - MAX_LINES) : last + 1]
    errors = [line for line in lines if line.stream == "stderr"]
    return (errors or lines)[-MAX_LINES:]


def _without_secrets(lines: Sequence[PrintedLine], redact: Callable[[str], str]) -> list[PrintedLine]:
    """Return the lines redacted one by one; those of a private key, which has several, as one."""
    safe: list[PrintedLine] = []
    is_in_key = False
    for line in lines:
        begins = _KEY_BEGIN in line.text and "PRIVATE KEY" in line.text
        if begins or is_in_key:
            if begins:
                safe.append(replace(line, text="***"))
            is_in_key = _KEY_END not in line.text
        else:
            safe.append(replace(line, text=redact(line.text)[:_MAX_LINE]))
    return safe


def _title(
    run: EndedRun,
    first: Rank | None,
    exception: str | None,
    message: str | None,
    fatal: str | None,
    redact: Callable[[str], str],
) -> str:
    signal = first.signal if first is not None else run.ending.signal
    code = first.exit_code if first is not None else run.ending.exit_code
    if exception and signal not in (9,):
        title = f"{exception}: {message}" if message else exception
    elif signal is not None:
        is_oom = first.out_of_memory if first is not None else run.ending.out_of_memory
        meaning = "out of memory" if is_oom else _MEANINGS.get(signal)
        title = signal_name(signal) + (f": {meaning}" if meaning else "")
        if fatal is not None:
            title = f"{fatal} ({signal_name(signal)})"
    elif fatal is not None:
        title = fatal
    elif code is not None:
        title = f"Exit code {code}"
    elif run.state == "failed":
        title = "It failed, by what its client reported; the client gave no reason"
    elif run.state == "lost":
        title = "Lost: nothing was heard of it any more, and no end was recorded"
    else:
        title = "The program ended without announcing it"
    return " ".join(shown_text(part) for part in redact(title).split())[:_MAX_TITLE]


def _multiline(text: str) -> str:
    return "\n".join(map(shown_text, text.split("\n")))


def _hint(lines: Sequence[PrintedLine], reason: object, signal: int | None) -> str | None:
    if not lines:
        return NOTHING_RECORDED
    return C_OUTPUT if signal in _FAULTS and reason is None else None
