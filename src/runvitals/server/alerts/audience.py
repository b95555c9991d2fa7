"""Who is notified about a run: those who may read it now, and nobody about runs that nobody waits for."""

from __future__ import annotations

from typing import Final

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.resources import Project, ProjectItem, Visibility
from runvitals.server.events.run_events import RunEvent
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.store.errors import NotFound

_ABOUT: Final = "run"
_MACHINE: Final = "machine"


def may_read_run(directory: Directory, user_id: int | None, run: RunPlace) -> bool:
    """Return whether a user may read a run now. Nobody may read one whose project was deleted."""
    user = None if user_id is None else directory.user(user_id)
    project = _project(directory, run)
    if user is None or project is None:
        return False
    item = ProjectItem("run", run.run_id, project, run.author_id, run.service_account_id, run.deleted)
    return directory.may(user, Action.RUN_READ, item)


def team_may_read(directory: Directory, run: RunPlace) -> bool:
    """Return whether every member of the team may read a run: only then channels of the team are notified."""
    project = _project(directory, run)
    return project is not None and project.visibility not in (Visibility.PRIVATE, Visibility.RESTRICTED)


def is_of_interest(store: MetadataStore, event: RunEvent) -> bool:
    """Return whether users are notified of an event.

    They are not of events of imported runs, and of the end of a simulation or a notebook only if it failed.
    """
    sections = store.sections.read([event.run_id], (_ABOUT, _MACHINE))[event.run_id]
    about = sections.shared.get(_ABOUT, {})
    if about.get("imported_from"):
        return False
    machines = sections.by_host.get(_MACHINE, {}).values()
    is_idle = about.get("notebook") or any(machine.get("simulated") for machine in machines)
    return not (is_idle and event.event == "finished")


def _project(directory: Directory, run: RunPlace) -> Project | None:
    try:
        return directory.project(run.project_id)
    except (UnknownProject, NotFound):
        return None  # deleted meanwhile
