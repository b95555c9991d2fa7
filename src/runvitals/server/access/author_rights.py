"""What the author of a run may do, for what the records of the run ask for."""

from __future__ import annotations

from runvitals.accounts.actions import Action
from runvitals.accounts.identity import CredentialOwner
from runvitals.accounts.resources import ProjectItem
from runvitals.model.errors import UnknownProject
from runvitals.server.access.control import AccessControl
from runvitals.store.errors import UnknownAccount
from runvitals.store.metadata.run_places import RunPlace


def may_of_author(access: AccessControl, place: RunPlace, action: Action, project_id: int) -> bool:
    """Whether the author of a run, or the service account that sent it, may do something with the artifacts
    of a project. Without accounts all is allowed; without an author, what is about the run's own project."""
    if access.mode() != "accounts":
        return True
    if place.author_id is not None:
        owner = CredentialOwner("user", place.author_id)
    elif place.service_account_id is not None:
        owner = CredentialOwner("service account", place.service_account_id)
    else:
        return place.project_id == project_id
    identity = access.directory.owner_now(owner)
    try:
        project = access.directory.project(project_id)
    except (UnknownAccount, UnknownProject):  # deleted a moment ago
        return False
    item = ProjectItem("artifact", 0, project)
    return identity is not None and access.directory.may(identity.principal, action, item)
