"""The ending of a run, and the state that follows from the exit of a process.

The monitor imports this module: it loads nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runvitals.model.run_state import State

_STOP_SIGNALS = frozenset({1, 2, 15})  # HUP, INT, TERM
_STOP_EXIT_CODES = frozenset({128 + 2, 128 + 15})  # of a shell whose child was ended by INT or TERM


class Ending:
    """The state of a run, or of a run on one host, and how it ended. Immutable.

    Args:
        state: one of `runvitals.model.state.STATES`.
        exit_code: of the program; None if a signal ended it or it is unknown.
        signal: that ended the program, or None.
        out_of_memory: whether the kernel killed it for memory; None if unknown.

    Example:
        >>> Ending("crashed", signal=9)
        Ending('crashed', exit_code=None, signal=9, out_of_memory=None)
    """

    __slots__ = ("exit_code", "out_of_memory", "signal", "state")

    def __init__(
        self,
        state: State,
        exit_code: int | None = None,
        signal: int | None = None,
        out_of_memory: bool | None = None,
    ) -> None:
        self.state = state
        self.exit_code = exit_code
        self.signal = signal
        self.out_of_memory = out_of_memory

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as they are in a journal's `end` record and in the API."""
        return {
            "state": self.state,
            "exit_code": self.exit_code,
            "signal": self.signal,
            "out_of_memory": self.out_of_memory,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ending) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def __repr__(self) -> str:
        return (
            f"Ending({self.state!r}, exit_code={self.exit_code}, signal={self.signal}, "
            f"out_of_memory={self.out_of_memory})"
        )


class ProcessExit:
    """The exit of a process: an exit code or a signal. Both are None if nothing recorded it.

    Attributes:
        out_of_memory: whether the kernel killed it for memory.
        unannounced: whether it ended without announcing it, although every interpreter that is not killed
            does. Only set where exit code and signal are unknown.

    Example:
        >>> ProcessExit(0, None).state, ProcessExit(1, None).state, ProcessExit(None, 9).state
        ('finished', 'failed', 'crashed')
    """

    __slots__ = ("exit_code", "out_of_memory", "signal", "unannounced")

    def __init__(self, exit_code: int | None, signal: int | None) -> None:
        self.exit_code = exit_code
        self.signal = signal
        self.out_of_memory = False
        self.unannounced = False

    @property
    def known(self) -> bool:
        """Whether the exit code or the signal is known."""
        return self.exit_code is not None or self.signal is not None

    @property
    def state(self) -> State:
        """The state of a run whose only process ended like this."""
        if self.unannounced:
            return "crashed"
        if self.signal is not None:
            return "stopped" if self.signal in _STOP_SIGNALS else "crashed"
        if self.exit_code in _STOP_EXIT_CODES:
            return "stopped"
        return "failed" if self.exit_code else "finished"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as they are in a journal's `exit` record."""
        return {"exit_code": self.exit_code, "signal": self.signal, "out_of_memory": self.out_of_memory}

    def ending(self) -> Ending:
        """Return the ending of a run whose only process ended like this."""
        return Ending(self.state, self.exit_code, self.signal, self.out_of_memory)


def signal_name(number: int) -> str:
    """Return the name of a signal; its number if this system has none for it.

    Example:
        >>> signal_name(9), signal_name(99)
        ('SIGKILL', 'signal 99')
    """
    from signal import Signals  # the monitor, which loads this module, names no signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"
