"""Finds the run of ours that a client means by entity, project and run id.

Run ids of wandb are unique within a project, ours within an entity. A run gets the client's id if it is valid
and free, else one that is derived from the project and the id.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from runvitals.journal.paths import check_run_id
from runvitals.model.names import project_name
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_places import RunPlace

SECTION: Final = "wandb"
"""The section of a run with what only wandb's clients need, such as `id` and `project`."""
RESUMED_LINES: Final = "resumed_lines"
"""In the section: after how many lines of earlier sessions the present client has resumed the run."""
SESSION_MS: Final = "session_ms"
"""In the section: when the present client's session began, by its machine's clock."""
NEWEST_SESSION_MS: Final = "newest_session_ms"
DEFAULT_PROJECT: Final = "uncategorized"
"""The project of a client that names none, as on wandb's servers."""
MAX_ID_CHARACTERS: Final = 512
"""The most characters of a client's run id."""
_NOT_IN_ADDRESSES: Final = re.compile(r"[/?#%\x00-\x1f\x7f]")
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class ClientRun:
    """A run as a client names it.

    Attributes:
        uid: our run id.
        stored_run: None if there is no such run yet.
    """

    name: str
    uid: str
    project: str
    stored_run: RunPlace | None


def check_client_id(name: str) -> None:
    """Check the id of a run that a client begins: clients put it into addresses as it is.

    Raises:
        ValueError: the address of its rows would be another one.
    """
    if name in (".", "..") or len(name) > MAX_ID_CHARACTERS or _NOT_IN_ADDRESSES.search(name):
        raise ValueError(
            f"invalid run id {name[:100]!r}: expected 1 to {MAX_ID_CHARACTERS} characters without / ? # % "
            "and control characters, and not . or .."
        )


def find_run(
    metadata_store: MetadataStore, entity_id: int | None, project: str | None, name: str
) -> ClientRun:
    """Return the run that a client names, or the id that it is to get. What the client may do is not checked.

    Args:
        entity_id: None on a server without accounts.
        project: None: `DEFAULT_PROJECT`.
    """
    client_project = project_name(project or DEFAULT_PROJECT)
    derived = _derive_id(client_project, name)
    is_taken = False
    if _is_valid(name):
        stored_run = _in_entity(metadata_store, entity_id, name)
        if (
            stored_run is None
            or stored_run.project == client_project
            or _began_in(metadata_store, stored_run, client_project)
        ):
            return ClientRun(name, name, client_project, stored_run)
        is_taken = True
    stored_run = _in_entity(metadata_store, entity_id, derived)
    if is_taken and stored_run is None and project is None:
        return ClientRun(name, name, client_project, _in_entity(metadata_store, entity_id, name))
    return ClientRun(name, derived, client_project, stored_run)


def _derive_id(project: str, name: str) -> str:
    digest = hashlib.sha256(f"{project}\n{name}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    readable = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name[:64])
    return f"{readable.strip('-') or 'run'}-{digest}"


def _is_valid(name: str) -> bool:
    try:
        check_run_id(name)
    except ValueError:
        return False
    return True


def _in_entity(metadata_store: MetadataStore, entity_id: int | None, uid: str) -> RunPlace | None:
    stored_runs = metadata_store.runs.places(uid)
    return next((run for run in stored_runs if entity_id is None or run.entity_id == entity_id), None)


def _began_in(metadata_store: MetadataStore, stored_run: RunPlace, project: str) -> bool:
    """Return whether a client created the run in this project, from which it was moved later."""
    sections = metadata_store.sections.read([stored_run.run_id], [SECTION]).get(stored_run.run_id)
    return sections is not None and sections.shared.get(SECTION, {}).get("project") == project
