"""Runs a function in a short-lived forked child.

So the monitor neither waits for it nor keeps the modules that it imports in memory.
"""

from __future__ import annotations

import os

from runvitals.base.json_codec import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class ForkedTask:
    """A function that runs in a forked child and returns its result through a pipe.

    The monitor has 8 MB and a single thread, so forking it is cheap and safe. Never use this in a training
    process.

    Args:
        function: runs in the child. Its result must be a JSON object.

    Raises:
        OSError: the pipe or the child could not be created.

    Example:
        >>> task = ForkedTask(lambda: {"hostname": "node1"})
        >>> task.fd  # poll it, then
        5
        >>> task.result()
        {'hostname': 'node1'}
    """

    __slots__ = ("_data", "fd", "pid")

    def __init__(self, function: Callable[[], dict[str, Any]]) -> None:
        self.fd, write_end = os.pipe()
        self._data = b""
        try:
            self.pid = os.fork()
        except OSError:
            os.close(self.fd)
            os.close(write_end)
            raise
        if self.pid == 0:
            _run_in_child(function, write_end)
        os.close(write_end)

    def result(self) -> dict[str, Any]:
        """Return the child's result, or `{"error": text}` if it failed.

        Call it when `fd` is readable: it reads to the end and reaps the child.
        """
        while data := os.read(self.fd, 65536):
            self._data += data
        self._reap()
        try:
            value = loads(self._data)
        except ValueError:  # it was killed
            return {"error": "the child process ended without a result"}
        return value if isinstance(value, dict) else {"error": f"unexpected result {value!r}"}

    def _reap(self) -> None:
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def _run_in_child(function: Callable[[], dict[str, Any]], write_end: int) -> NoReturn:
    """Run the function, write its result into the pipe, and exit.

    Closes every descriptor but the pipe first: an open copy of the sockets would hide the monitor's death.

    Never returns, not even when nobody reads the pipe any more because the monitor was killed: the child
    would go on as a second monitor of the run.
    """
    try:
        os.dup2(write_end, 1)
        os.closerange(2, 256)
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - the error becomes the result
            result = {"error": f"{type(error).__name__}: {error}"}
        text = dumps(result)
        while text:
            text = text[os.write(1, text) :]
    finally:
        os._exit(0)
