"""The common part of the commands that change runs: of this machine, or of a server with `--server`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Any, Protocol

from runvitals.cli import error_text
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert
from runvitals.model.errors import CannotWrite
from runvitals.monitoring.environment import redaction
from runvitals.readers.journals.run_handle import find_run, now_ms

if TYPE_CHECKING:
    from runvitals.readers.servers.connection import ApiConnection

_RUN = "run id, a unique prefix of it, the run's name, or `latest`; of a server: its id, or TEAM/ID"
_TIMEOUT_S = 30.0
_MOST_CHARACTERS = {"name": 256, "tags": 256, "notes": 100_000}


class ChangeableRuns(Protocol):
    """Runs that can be changed. Each method takes what names a run, and returns its id."""

    def edit(self, reference: str, values: Mapping[str, Any]) -> str:
        """Set `name`, `notes` and so on."""

    def tag(self, reference: str, add: Sequence[str], remove: Sequence[str]) -> str:
        """Add and remove tags."""

    def delete(self, reference: str) -> str:
        """Move it to the trash."""

    def restore(self, reference: str) -> str:
        """Restore it from the trash."""

    def notes(self, reference: str) -> str:
        """Return its notes."""


def add_runs(parser: argparse.ArgumentParser, several: bool = True) -> None:
    """Add the arguments that name runs, and say where they are."""
    parser.add_argument("runs", metavar="RUN", nargs="+" if several else 1, help=_RUN)
    parser.add_argument(
        "--server", metavar="URL", help="runs of this server, with the stored key and its rights"
    )
    add_dir(parser)


def change_each(
    arguments: argparse.Namespace, change: Callable[[ChangeableRuns, str], str], done: str
) -> int:
    """Change each named run and print its id; return 1 if one was not changed."""
    failed = False
    with _opened(arguments) as runs:
        for reference in arguments.runs:
            try:
                print(inert(f"{done} {change(runs, reference)}"))
            except (CannotWrite, LookupError, OSError, ValueError) as error:
                failed = True
                print(f"runvitals: {inert(redaction.text(error_text(error)))}", file=sys.stderr)
    return 1 if failed else 0


def _opened(arguments: argparse.Namespace) -> AbstractContextManager[ChangeableRuns]:
    if arguments.server is None:
        return closing(_JournalRuns(directory(arguments)))
    from runvitals.base import stored_keys
    from runvitals.readers.servers.connection import ApiConnection

    key = stored_keys.token(arguments.server, os.environ)
    return closing(_ServerRuns(ApiConnection(arguments.server, key, _TIMEOUT_S)))


def _check_lengths(values: Mapping[str, Any]) -> None:
    """Raise ValueError for what a server would not take either."""
    for name, most in _MOST_CHARACTERS.items():
        texts = values.get(name, ())
        for text in [texts] if isinstance(texts, str) else texts:
            if len(text) > most or (name == "tags" and not text):
                raise ValueError(f"{name}: {text!r:.60}: expected a text of at most {most:,} characters")


class _JournalRuns:
    """The runs of a data folder, whose changes are recorded beside their journals and delivered."""

    def __init__(self, folder: str) -> None:
        from runvitals.readers.journals.runs import RunList
        from runvitals.relay.edit_delivery import deliver_edits
        from runvitals.server.library.local.run_edits import RunEdits

        self._folder, self._list = folder, RunList(folder)
        self._edits = RunEdits(folder, lambda run_id: deliver_edits(run_id, folder))

    def edit(self, reference: str, values: Mapping[str, Any]) -> str:
        _check_lengths(values)
        run_id = find_run(reference, self._folder)
        at_ms = max(now_ms(), self._list.about_time(run_id, values) + 1)  # later than all that it replaces
        self._edits.record(run_id, values, at_ms)
        return run_id

    def tag(self, reference: str, add: Sequence[str], remove: Sequence[str]) -> str:
        before = self._facts(reference).tags
        return self.edit(
            reference, {"tags": [tag for tag in dict.fromkeys([*before, *add]) if tag not in remove]}
        )

    def delete(self, reference: str) -> str:
        return self.edit(reference, {"deleted": True})

    def restore(self, reference: str) -> str:
        return self.edit(reference, {"deleted": False})

    def notes(self, reference: str) -> str:
        return str(self._facts(reference).notes)

    def _facts(self, reference: str) -> Any:
        run_id = find_run(reference, self._folder)
        run = self._list.run(run_id, now_ms())
        if run is None:
            raise LookupError(f"no run {run_id!r} in {self._folder}")
        return run

    def close(self) -> None:
        self._edits.close()


class _ServerRuns:
    """The runs of a server."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    def edit(self, reference: str, values: Mapping[str, Any]) -> str:
        return self._change("PATCH", "", reference, dict(values))

    def tag(self, reference: str, add: Sequence[str], remove: Sequence[str]) -> str:
        entity, run_id = _split(reference)
        changes = {"add_tags": list(add), "remove_tags": list(remove)}
        body = {"runs": [{"id": run_id, "entity": entity}], "do": "update", "changes": changes}
        (result,) = self._connection.send("POST", "/runs/bulk", body)["results"]
        if result.get("error"):
            raise ValueError(result["error"])
        return run_id

    def delete(self, reference: str) -> str:
        return self._change("DELETE", "", reference, None)

    def restore(self, reference: str) -> str:
        return self._change("POST", "/restore", reference, {})

    def notes(self, reference: str) -> str:
        entity, run_id = _split(reference)
        run = self._connection.call("GET", "/runs/{run}", {"run": run_id}, None, [("entity", entity)])
        return str(run["notes"])

    def _change(self, method: str, path: str, reference: str, body: Any) -> str:
        entity, run_id = _split(reference)
        self._connection.call(method, "/runs/{run}" + path, {"run": run_id}, body, [("entity", entity)])
        return run_id

    def close(self) -> None:
        self._connection.close()


def _split(reference: str) -> tuple[str | None, str]:
    """Return the team or user of `TEAM/ID`, None without one, and the id."""
    entity, slash, run_id = reference.rpartition("/")
    return (entity if slash else None), run_id
