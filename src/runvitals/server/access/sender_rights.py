"""What the sender of a record may do, for what the record asks for."""

from __future__ import annotations

from dataclasses import replace

from runvitals.model.errors import UnknownProject
from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import KeyScope, Principal, ServiceAccount, User
from runvitals.server.access.resources import ProjectItem
from runvitals.store.errors import NotFound


def may_of_sender(access: AccessControl, sender: Principal | None, action: Action, project_id: int) -> bool:
    """Whether the owner of the key that sent a record may do something with the artifacts of a project, with
    that key. Without accounts all is allowed.

    A key that only sends runs logs and uses artifacts like one that writes: a record returns no content.
    """
    if access.mode() != "accounts":
        return True
    if sender is None:
        return False
    try:
        project = access.directory.project(project_id)
    except (NotFound, UnknownProject):  # deleted a moment ago
        return False
    return access.directory.may(_with_artifacts(sender), action, ProjectItem("artifact", 0, project))


def _with_artifacts(sender: Principal) -> Principal:
    """The sender; one with a key that only sends runs, as if it were a key that writes."""
    if not isinstance(sender, (User, ServiceAccount)) or sender.key is None:
        return sender
    if sender.key.scope is not KeyScope.INGEST:
        return sender
    return replace(sender, key=replace(sender.key, scope=KeyScope.WRITE))
