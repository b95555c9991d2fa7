"""The interface that every destination of the relay implements.

A destination is an object with a `name`, `deliver(batch)` and `close()`. It is made by a *factory*, usually
the class itself, called as `factory(address, context)`:

    class PrintingDestination(Destination):
        '''Prints the number of values in each batch.'''

        name = "printing"

        def __init__(self, address: str, context: Context) -> None:
            self.address = address

        def deliver(self, batch: Batch) -> None:
            print(self.address, batch.run.id, batch.writer.name, batch.points)

Users choose destinations with the setting `destinations`, a list of `NAME` or `NAME:ADDRESS`; a plain
`http://…` or `https://…` is a runvitals server. The names are those of `destinations.BUILT_IN` and of the
entry-point group `runvitals.destinations` (`printing = "my_package.printing:PrintingDestination"`). The text
after the first colon is passed to the factory unchanged: `files:/data/out?format=csv` calls
`factory("/data/out?format=csv", context)`; `NAME` alone passes "". An address must not contain a password or
token, because it is written into the run's folder. Secrets come from the environment (`Context.environ`) or
from files.

The relay guarantees:

* There is one object per run and destination, and one thread per destination. `deliver` is called with one
  batch at a time, in the order of the writer's records; writers (the host's monitor, its training processes)
  take turns. `deliver` may block, but should time out (30 s is a good limit). Other destinations, and the
  training, never wait for it.
* A batch covers about `interval_s` seconds of data, less at events and at the end of the run, more when
  catching up (about 500 kB of samples at most).
* When `deliver` returns, the batch is *delivered* and never comes again, unless the process is killed within
  the same round (one batch per writer). The range is saved before the first `deliver`, so a batch that is
  retried, now or by another relay after `kill -9`, has the same records and the same `first_seq` and
  `last_seq`, with `repeated` set. A server that remembers the key (run, writer, first_seq) stores everything
  exactly once. For one that does not, keep a position in `context.state` (a file's length, the last time
  sent); it is saved together with the relay's own position.
* `deliver` may raise:
    - `Retry(text, after_s)`: keep the batch and retry after `after_s` (what the server asked for), else after
      1, 2, 4 … 60 s with jitter. OSError (network, timeouts) has the same effect.
    - `Unauthorized(text, remedied)`: like `Retry`, but a user must act first (set a token). The run's journal
      records it once as an event. The relay retries as soon as `remedied()` is true, else every 10 minutes.
    - `TooEarly(text, after_s)`: the server will accept this batch later, and the next ones now. It is retried
      after `after_s` (what the server asked for), else every hour, and by `runvitals sync`.
    - `Rejected(text)`: this batch, or the listed records of it, can never be delivered. They are counted and
      saved in a file next to the relay's position, `runvitals relay status` shows `text`, and delivery
      continues with the next batch.
    - `Unfinished()`: part of the batch was delivered, such as some files. `deliver` is called again soon with
      the same batch; other writers and runs are served meanwhile.
    - `Gone(text)`: the server wants no more data of this run, ever.
    - `Paused(text)`: the same until a user changes it: while the run is running, the relay retries the batch
      every 10 s.
    - anything else is a bug in the destination: the last line of the traceback is reported, then it is
      handled like `Retry`.
* `close()` is called when the run has been delivered or the relay exits: flush buffers, close connections. It
  may raise `Retry` or OSError if something could not be flushed; that is reported. Flush data that must not
  be lost in `deliver` already.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from runvitals.relay.batch import Batch


class Retry(Exception):
    """The batch was not delivered: keep it and retry.

    Args:
        text: the reason, shown to the user.
        after_s: the delay the server asked for (Retry-After); None: the relay's own backoff.
    """

    def __init__(self, text: str, after_s: float | None = None) -> None:
        super().__init__(text)
        self.after_s = after_s


class Unauthorized(Retry):
    """The server rejected our credentials, or there are none; a user must act first.

    Args:
        text: what to do, shown to the user.
        remedied: returns whether it may have been done; called about once a second.
    """

    def __init__(self, text: str, remedied: Callable[[], bool]) -> None:
        super().__init__(text)
        self.remedied = remedied


class TooEarly(Exception):
    """The server does not accept this batch yet.

    Args:
        text: why, and what the user can do.
        after_s: the delay that the server asked for; None: it may take hours.
    """

    def __init__(self, text: str, after_s: float | None = None) -> None:
        super().__init__(text)
        self.after_s = after_s


class RejectedRecord(NamedTuple):
    """A record that the server will never accept.

    Attributes:
        seq: the record number in the journal.
        time_ms: UTC.
        value: its content, as JSON.
        why: the server's reason.
    """

    seq: int
    time_ms: int
    value: Mapping[str, Any]
    why: str


class Rejected(Exception):
    """The batch, or part of it, can never be delivered.

    Args:
        text: the reason, shown to the user.
        points: how many values were dropped, if all others of the batch were delivered; None: all.
        records: the rejected records; empty if it is not known which were rejected.
    """

    def __init__(self, text: str, points: int | None = None, records: Sequence[RejectedRecord] = ()) -> None:
        super().__init__(text)
        self.points = points
        self.records = records


class Unfinished(Exception):
    """Part of the batch was delivered. The batch is passed again, after those of other writers and runs."""


class Gone(Exception):
    """The server accepts no more data for this run; the text says why."""


class Paused(Gone):
    """The run was moved to the server's trash and may be restored.

    The batch is kept, and retried every few seconds while the run is running.
    """


class Context:
    """The facts and services that the relay provides to a destination.

    Attributes:
        run_id: id of the run.
        folder: the run's folder; a destination may keep files in its `relay/` subfolder.
        cwd: the working directory of the training (or of `runvitals sync`), the base of relative paths.
        environ: the environment of the process that started the relay, except that variables starting with
            the destination's name (`MLFLOW_…` for `mlflow`) are those of the training. Read it when needed,
            not once: a run that is resumed later brings new values.
        state: the destination's own JSON values, restored after a restart. Saved together with the relay's
            position after each round of `deliver` calls, whether they returned or raised.
        save: saves the state immediately, for actions that must not be repeated (the id of a run just created
            at the server).
        request_stop: call it when the server requests that the run be stopped; the text says who
            requested it. The training receives SIGINT, or its callback is called.
        request_command: call it with the number of a request and a name when the server requests a command
            that the user of the host registered.
    """

    __slots__ = ("cwd", "environ", "folder", "request_command", "request_stop", "run_id", "save", "state")

    def __init__(
        self,
        run_id: str,
        folder: str,
        cwd: str,
        state: dict[str, Any],
        save: Callable[[], None],
        request_stop: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
        request_command: Callable[[int, str], None] = lambda number, name: None,
    ) -> None:
        self.run_id = run_id
        self.folder = folder
        self.cwd = cwd
        self.state = state
        self.save = save
        self.request_stop = request_stop
        self.environ = environ
        self.request_command = request_command


class Destination(ABC):
    """Base class of destinations; see the module's docstring. Any object with these attributes will do.

    Attributes:
        name: its name in messages and files: letters, digits, `_` and `-`.
        interval_s: seconds of data in a batch.
        prompt: deliver a batch early when it holds an event or a lifecycle record; False where each request
            costs money.
        heartbeat_s: if set, deliver an empty batch of the run's monitor after this many seconds without
            another delivery, while the run is running.
    """

    name: str = ""
    interval_s: float = 5.0
    prompt: bool = True
    heartbeat_s: float | None = None

    @abstractmethod
    def deliver(self, batch: Batch) -> None:
        """Deliver the batch, or raise `Retry`, `Rejected`, `Gone` or OSError."""

    def close(self) -> None:  # noqa: B027 – most destinations have nothing to close
        """Release what the destination holds: the run has been delivered, or the relay exits."""


class Factory(Protocol):
    """Creates a destination for one run.

    Raises:
        ValueError: invalid address; the text says what is allowed. Nothing is delivered, and `status` shows
            why.
        ModuleNotFoundError: a package is missing; the relay says which extra to install.
    """

    def __call__(self, address: str, context: Context) -> Destination:
        """Return the destination at an address."""


def __getattr__(name: str) -> Any:
    """Return deprecated names that third-party destinations may still import."""
    renamed = {"NotLetIn": Unauthorized, "Refused": RejectedRecord}.get(name)
    if renamed is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now called {renamed.__name__}", DeprecationWarning, stacklevel=2)
    return renamed
