"""The result of an import, and what it left out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from runvitals.journal import paths
from runvitals.readers.importers.run_draft import RunDraft
from runvitals.readers.importers.sources import DAMAGE


@dataclass(slots=True)
class ImportReport:
    """The result of importing from one source.

    Attributes:
        imported: ids of the runs that are new, with a line about each.
        existing: ids of runs that were imported before.
        failed: ids of runs, and names of files, that could not be imported, with the reason.
        left_out: what was not imported, with how often.
        total: how many runs the source has; 0 if that is not known.
        rows: how many rows were written so far, by importers that report within a run.
    """

    imported: dict[str, str] = field(default_factory=dict)
    existing: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    total: int = 0
    rows: int = 0

    @property
    def done(self) -> int:
        """How many runs it has reported on."""
        return len(self.imported) + len(self.existing) + len(self.failed)

    def attempt(self, run_id: str, directory: str, write: Callable[[], object], source: str = "") -> None:
        """Import a run with `write`, unless the data folder has it; report what prevents it.

        Args:
            source: the file or folder that has the run.
        """
        if os.path.exists(paths.run_dir(run_id, directory)):
            self.existing.append(run_id)
            return
        with self.reporting(run_id, source):
            write()

    def attempt_in_parts(
        self, run_id: str, directory: str, parts: Iterable[int], source: str = ""
    ) -> Iterator[ImportReport]:
        """Import a run as `attempt`; yield this report after each part.

        Args:
            parts: writes a part of the run, and yields how many rows it has.
        """
        if os.path.exists(paths.run_dir(run_id, directory)):
            self.existing.append(run_id)
            return
        with self.reporting(run_id, source):
            for rows in parts:
                self.rows += rows
                yield self

    @contextmanager
    def reporting(self, name: str, source: str = "") -> Iterator[None]:
        """Report what prevents something, and go on with the rest.

        Args:
            name: the id of a run, or the name of a file.
            source: the file or folder in which it is.
        """
        try:
            yield
        except DAMAGE as error:
            kind = "" if isinstance(error, (OSError, ValueError)) else f"damaged: {type(error).__name__}: "
            prefix = f"{source}: " if source and source not in str(error) else ""
            self.failed[name] = f"{prefix}{kind}{error}"

    def leave_out(self, what: str, count: int = 1) -> None:
        """Count something that is not imported."""
        if count:
            self.left_out[what] = self.left_out.get(what, 0) + count

    def add(self, run_id: str, project: str, draft: RunDraft, note: str = "") -> None:
        """Report an imported run, with a note that ends the line."""
        self.imported[run_id] = (
            f"{run_id} of project {project}: {draft.samples} samples, {draft.rows} log() rows, "
            f"{draft.files} files{_text_of(draft.faults)}{note}"
        )


def _text_of(faults: Mapping[str, int]) -> str:
    return "".join(f"; {count} × {fault}" for fault, count in faults.items())
