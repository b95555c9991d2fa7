"""Who may read a run now: notifications about it go to nobody else."""

from __future__ import annotations

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.directory import Directory
from runvitals.server.access.resources import Project, ProjectItem, Visibility
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.store.errors import NotFound


def may_read_run(directory: Directory, user_id: int | None, place: RunPlace) -> bool:
    """Whether a user may read a run now. Nobody may read one whose project was deleted."""
    user = None if user_id is None else directory.user(user_id)
    project = _project(directory, place)
    if user is None or project is None:
        return False
    item = ProjectItem("run", place.run_id, project, place.author_id, place.service_account_id, place.deleted)
    return directory.may(user, Action.RUN_READ, item)


def team_may_read(directory: Directory, place: RunPlace) -> bool:
    """Whether every member of the team may read a run: only then channels of the team are notified."""
    project = _project(directory, place)
    return project is not None and project.visibility not in (Visibility.PRIVATE, Visibility.RESTRICTED)


def _project(directory: Directory, place: RunPlace) -> Project | None:
    try:
        return directory.project(place.project_id)
    except (UnknownProject, NotFound):
        return None  # deleted meanwhile
