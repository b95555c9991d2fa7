"""What people may do with reports that were shared with them by name."""

from __future__ import annotations

from typing import Final

from runvitals.server.access.actions import Action
from runvitals.server.reports.storage.rows import ShareRole

_VIEW: Final = frozenset((Action.REPORT_READ, Action.REPORT_COMMENT, Action.REPORT_FOLLOW))
_EDIT: Final = _VIEW | {Action.REPORT_UPDATE}


def actions_of_share(role: ShareRole | None, is_draft: bool) -> frozenset[Action]:
    """Return the actions that a share allows. A draft is for those who may edit it.

    Example:
        >>> sorted(action.value for action in actions_of_share("view", is_draft=False))
        ['report:comment', 'report:follow', 'report:read']
    """
    if role == "edit":
        return _EDIT
    return _VIEW if role == "view" and not is_draft else frozenset()
