"""The errors of the stores. Loads no database library, so that every server can handle them."""

from __future__ import annotations


class StoreError(OSError):
    """The sample store cannot be used; the text names the folder, file or engine, and what to do."""


class MetadataStoreError(Exception):
    """The metadata store cannot be used; the text names the database and what to do."""


class QueryFailed(MetadataStoreError):
    """A read or write failed; the text is the database's."""


class MetadataStoreUnavailable(QueryFailed):
    """A read or write failed for a reason that may pass: a full disk, a locked file, a lost connection."""


class DeletedMeanwhile(QueryFailed):
    """What a request had found was deleted before the request could use it."""


class NameTaken(ValueError):
    """A name that another user, team, role, service account or key has, or had."""


class OtherStorage(ValueError):
    """Two teams keep their files in different places, so that what has files cannot move between them."""


class LimitReached(ValueError):
    """There is as much of something as is allowed: teams, members, roles, invitations of a day."""


class InUse(Exception):
    """Something is not deleted because something else depends on it; the text says what."""


class SentTooOften(ValueError):
    """An invitation that may not be sent again before `wait_s` seconds have passed."""

    def __init__(self, text: str, wait_s: int = 86_400) -> None:
        super().__init__(text)
        self.wait_s = wait_s


class LastAdministrator(ValueError):
    """A change that would leave the organisation or a team without an administrator."""


class NotAnAdministrator(ValueError):
    """A billing administrator has to administer the organisation too."""


class SettingFixed(ValueError):
    """A setting that stays as it is, because statements were issued with it."""


class NoLongerValid(ValueError):
    """An invitation or one-time link that was used, ended or revoked. The text names no team and no user."""


class NotAllowed(ValueError):
    """Somebody may not join a team or a project; the text says who, and whom to ask."""


class ProtectedAlias(Exception):
    """An alias of a registry that only its administrators may change; the text names them."""


class LinkRefused(Exception):
    """A version that may not be linked out of its project; the text names who may."""


class NotFound(LookupError):
    """There is no such user, team, role, key, rule, price, …; the text says what was looked for."""
