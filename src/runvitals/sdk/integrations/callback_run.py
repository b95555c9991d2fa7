"""Code shared by the callbacks of all frameworks."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runvitals import sdk
from runvitals.sdk import start


class CallbackRun:
    """A callback's run, and its logging interval.

    Args:
        every_s: seconds between two rows; 0 logs every step. A row costs 10 µs, but fetching a value from an
            accelerator may block.
        settings: arguments for `runvitals.init` if no run is open.
        clock: monotonic seconds.
    """

    def __init__(
        self, every_s: float, settings: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> None:
        if every_s < 0:
            raise ValueError(f"invalid every_s={every_s!r}: expected 0 or more seconds")
        self.every_s = every_s
        self.settings = dict(settings)
        self._clock = clock
        self._due_s = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the due time, for a copy in a process with another clock."""
        return {"every_s": self.every_s, "settings": self.settings, "_clock": self._clock, "_due_s": 0.0}

    def run(self, config: Mapping[str, Any] | None = None) -> sdk.Run:
        """Return the open run, or a new one; `config` is added to its configuration."""
        run = start.current_run() or sdk.init(**self.settings)
        if config:
            run.config.update({key: value for key, value in config.items() if _plain(value)})
        return run

    def due(self) -> bool:
        """Return whether it is time for the next row."""
        now_s = self._clock()
        if now_s < self._due_s:
            return False
        self._due_s = now_s + self.every_s
        return True


def _plain(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool | list | tuple | dict)


def derive_class(cls: type, module: str, *bases: tuple[str, str]) -> type:
    """Return a subclass of `cls` and the framework's base class.

    Args:
        module: name of the framework, for the error.
        bases: (module, class name) candidates; the first one in an imported module is used.

    Raises:
        RuntimeError: none of the modules has been imported.
    """
    for name, base in bases:
        loaded = getattr(sys.modules.get(name), base, None)
        if loaded is not None:
            return cls if issubclass(cls, loaded) else type(cls.__name__, (cls, loaded), {})
    raise RuntimeError(f"{cls.__name__}: {module} has not been imported; `import {bases[0][0]}` first")


def log_importances(run: sdk.Run, scores: Mapping[str, float]) -> None:
    """Log how much each feature counts, as a bar chart and a table."""
    from runvitals.sdk.media import charts
    from runvitals.sdk.media.table import Table

    if scores:
        rows = sorted(scores.items(), key=lambda row: -row[1])
        table = Table(columns=["Feature", "Importance"], data=[[name, float(score)] for name, score in rows])
        run.log({"Feature Importance": charts.bar(table, "Feature", "Importance", "Feature importance")})


def log_model_file(
    run: sdk.Run, name: str, save: Callable[[str], object], aliases: Sequence[str] = ()
) -> None:
    """Log a model as an artifact.

    Args:
        name: of the file.
        save: writes the model to a path.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        save(path)
        run.log_model(path, name=f"run-{run.id}-model", aliases=list(aliases) or None)
