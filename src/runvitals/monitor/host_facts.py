"""Facts about the machine, gathered by a short-lived child: what it imports and how long git takes is not the
monitor's burden.
"""

from __future__ import annotations

import _signal
import os

from runvitals.journal.json_codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Inquiry:
    """A question put to a forked child, whose answer comes through a pipe.

    The monitor is 8 MB and single-threaded, so forking it is cheap and safe; never do this in a training
    process.

    Args:
        ask: runs in the child; its result must be a JSON object.

    Raises:
        OSError: there can be no child, or no pipe.

    Example:
        >>> inquiry = Inquiry(lambda: {"hostname": "node1"})
        >>> inquiry.fd  # poll it, then
        5
        >>> inquiry.answer()
        {'hostname': 'node1'}
    """

    __slots__ = ("_data", "fd", "pid")

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self.fd, write_end = os.pipe()
        self._data = b""
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.fd)
            os.close(write_end)
            raise
        if self.pid == 0:
            _in_child(ask, write_end)
        os.close(write_end)

    def answer(self) -> dict[str, Any]:
        """The child's answer; `{"error": text}` if it failed. Call it when `fd` is readable: it reads to the
        end and reaps the child.
        """
        while data := os.read(self.fd, 65536):
            self._data += data
        self._reap()
        value = loads(self._data) if self._data else {"error": "the inquiry ended without an answer"}
        return value if isinstance(value, dict) else {"error": f"the inquiry answered {value!r}"}

    def abandon(self) -> None:
        """End the child, whatever it waits for."""
        try:
            os.kill(self.pid, _signal.SIGKILL)
        except ProcessLookupError:
            return
        self._reap()

    def _reap(self) -> None:
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def _in_child(ask: Callable[[], dict[str, Any]], write_end: int) -> None:
    """Everything but the pipe is closed first, so that a monitor that dies now is seen to be dead."""
    os.dup2(write_end, 1)
    os.closerange(2, 256)
    try:
        answer = ask()
    except Exception as error:  # noqa: BLE001 - the answer is the error; there is nobody else to tell
        answer = {"error": f"{type(error).__name__}: {error}"}
    text = dumps(answer)
    while text:
        text = text[os.write(1, text) :]
    os._exit(0)
