"""What a destination is: the small interface that everything the relay delivers to implements.

A destination is an object with a `name`, `deliver(batch)` and `close()`. It is made by a *factory*, usually
the class itself, called as `factory(address, context)`:

    class PrintingDestination(Destination):
        '''Prints how many values came.'''

        name = "printing"

        def __init__(self, address: str, context: Context) -> None:
            self.address = address

        def deliver(self, batch: Batch) -> None:
            print(self.address, batch.run.id, batch.writer.name, batch.points)

A user chooses destinations with the setting `destinations`, a list of `NAME` or `NAME:ADDRESS`; a plain
`http://…` or `https://…` is a runvitals server. Names are those of `destinations.BUILT_IN` and of the
entry-point group `runvitals.destinations` (`printing = "my_package.printing:PrintingDestination"`). What
follows the first colon is handed to the factory as it is: `files:/data/out?format=csv` calls
`factory("/data/out?format=csv", context)`; `NAME` alone gives "". An address must hold no password or token:
it is written into the run's folder. Secrets come from the environment (`Context.environ`) or from files.

What the relay promises:

* One object for each run and destination, in a thread of its destination. `deliver` is called with one batch
  at a time, in the order of the writer's records; writers (the host's monitor, its training processes) take
  turns. `deliver` may block; time out what could block for ever (30 s is a good limit). Other destinations,
  and the training, never wait.
* A batch covers about `interval_s` seconds of data, less at events and at the end of the run, more when
  catching up (some 500 kB of samples at most).
* `deliver` returning means *delivered*: the batch never comes again, unless the process is killed within the
  same round (a batch of each writer). The stretch is written down before the first `deliver`, so that a batch
  that is tried again, now or by another relay after `kill -9`, has the same records and the same `first_seq`
  and `last_seq`, with `repeated` set. A far side that knows the key (run, writer, first_seq) has everything
  exactly once. One that does not can keep a position of its own in `context.state` (a file's length, the last
  time sent), which is saved in one piece with the relay's own position.
* `deliver` raising:
    - `Retry(text, after_s)`: keep it and come again with the same batch, after `after_s` (what the far side
      asked for), else after 1, 2, 4 … 60 s with jitter. OSError (network, timeouts) means the same.
    - `Unauthorized(text, remedied)`: like `Retry`, but a user must act first (set a token). The run's journal
      records it once as an event. The relay retries as soon as `remedied()` is true, else every 10 minutes.
    - `TooEarly(text)`: this batch is taken later, and the next ones now. It is tried again every hour, and by
      `runvitals sync`.
    - `Rejected(text)`: this batch, or the records of it that are named, can never be delivered. They are
      counted and set aside in a file beside the relay's position, `text` is shown by `runvitals relay
      status`, and the next batch is delivered.
    - `Gone(text)`: the far side wants nothing more of this run, ever.
    - `Paused(text)`: the same, unless somebody changes it: while the run goes on, the relay comes again with
      the same batch every 10 s.
    - anything else is a bug of the destination: reported with its traceback's last line, then treated like
      `Retry`.
* `close()` is called when the run is delivered or the relay ends: flush buffers, close connections. It may
  raise `Retry` or OSError to say that something could not be flushed; that is reported. What must not be
  lost is flushed in `deliver`.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from runvitals.relay.batch import Batch


class Retry(Exception):
    """Not delivered now: keep the batch and try again.

    Args:
        text: why, for a person.
        after_s: how long the far side wants to be left alone (Retry-After); None: as the relay thinks best.
    """

    def __init__(self, text: str, after_s: float | None = None) -> None:
        super().__init__(text)
        self.after_s = after_s


class Unauthorized(Retry):
    """The far side does not let us in until somebody does something.

    Args:
        text: what is to be done, for a person.
        remedied: whether it has been done, as far as can be seen; asked every second or so.
    """

    def __init__(self, text: str, remedied: Callable[[], bool]) -> None:
        super().__init__(text)
        self.remedied = remedied


class TooEarly(Exception):
    """This batch is not taken yet; the text says why, and what is to be done, for a person."""


class RejectedRecord(NamedTuple):
    """A record that the far side never takes.

    Attributes:
        seq: the journal's number of the record.
        time_ms: UTC.
        value: what it says, as JSON.
        why: the far side's reason.
    """

    seq: int
    time_ms: int
    value: Mapping[str, Any]
    why: str


class Rejected(Exception):
    """This batch, or some of it, can never be delivered.

    Args:
        text: why, for a person.
        points: how many values were dropped; None: all that the batch has.
        records: those that were refused, where all others of the batch were delivered; empty where it is not
            known which they are.
    """

    def __init__(self, text: str, points: int | None = None, records: Sequence[RejectedRecord] = ()) -> None:
        super().__init__(text)
        self.points = points
        self.records = records


class Gone(Exception):
    """The far side wants no more of this run; the text says why, for a person."""


class Paused(Gone):
    """The far side wants no more of this run as things are, and may want it again: somebody threw it away,
    and may bring it back. The batch is kept, and tried again every few seconds while the run goes on.
    """


class Context:
    """What the relay offers a destination.

    Attributes:
        run_id: the run.
        folder: the run's folder, for files of its own in `relay/`.
        cwd: the working directory of the training (or of `runvitals sync`): what relative paths are relative
            to.
        environ: the environment of the process that began the relay, but for variables that begin with the
            destination's name (`MLFLOW_…` for `mlflow`): those are the training's. Look at it when it is
            needed, for a run that goes on later brings its own.
        state: JSON values of the destination's own; those of an earlier life are in it. Saved in one piece
            with the relay's position after each round of `deliver` calls, whether they returned or raised.
        save: saves the state now; for what must not be done twice (the id of a run that was just made over
            there).
        request_stop: the far side wants the run to stop; the text says who asked, for a person. The training
            gets SIGINT or its callback.
    """

    __slots__ = ("cwd", "environ", "folder", "request_stop", "run_id", "save", "state")

    def __init__(
        self,
        run_id: str,
        folder: str,
        cwd: str,
        state: dict[str, Any],
        save: Callable[[], None],
        request_stop: Callable[[str], None],
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        self.run_id = run_id
        self.folder = folder
        self.cwd = cwd
        self.state = state
        self.save = save
        self.request_stop = request_stop
        self.environ = environ


class Destination(ABC):
    """Base class of destinations; see the module's text. Subclassing it is not needed, its attributes are.

    Attributes:
        name: what it is called in messages and files: letters, digits, `_` and `-`.
        interval_s: seconds of data in a batch.
        prompt: deliver a batch early when it holds an event or a lifecycle record; False for whoever pays by
            the call.
        heartbeat_s: None, or: while the run goes on, deliver an empty batch of its monitor when nothing else
            was delivered for so long.
    """

    name: str = ""
    interval_s: float = 5.0
    prompt: bool = True
    heartbeat_s: float | None = None

    @abstractmethod
    def deliver(self, batch: Batch) -> None:
        """Hand the batch over for good, or raise `Retry`, `Rejected`, `Gone` or OSError."""

    def close(self) -> None:  # noqa: B027 – most have nothing to let go of
        """The end: of the run, or of the relay."""


class Factory(Protocol):
    """Makes a destination for one run.

    Raises:
        ValueError: an address that cannot be; the text names what is allowed. Nothing is delivered, `status`
            says why.
        ModuleNotFoundError: a package is missing; the relay says which extra to install.
    """

    def __call__(self, address: str, context: Context) -> Destination: ...


def __getattr__(name: str) -> Any:
    """The names that destinations of other packages may still import."""
    renamed = {"NotLetIn": Unauthorized, "Refused": RejectedRecord}.get(name)
    if renamed is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"{name} is now called {renamed.__name__}", DeprecationWarning, stacklevel=2)
    return renamed
