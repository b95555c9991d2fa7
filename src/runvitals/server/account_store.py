"""`AccountStore`: the tables of accounts, as `MetadataStore.accounts`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from runvitals.server.access.storage.grants import (
    EntityFacts,
    ServiceGrants,
    UserGrants,
    entity_facts,
    entity_id_of,
    service_grants,
    user_grants,
)
from runvitals.server.access.storage.idempotent_requests import IdempotentRequestTable
from runvitals.server.accounts.storage.adoption import adopt_earlier_projects
from runvitals.server.accounts.storage.credentials import CredentialTable
from runvitals.server.accounts.storage.device_logins import DeviceLoginTable
from runvitals.server.accounts.storage.emails import EmailTable
from runvitals.server.accounts.storage.ending_access import EndingAccess
from runvitals.server.accounts.storage.entities import (
    deleted_spaces,
    ensure_organisation,
    names_of,
    purge_space,
    release_name,
)
from runvitals.server.accounts.storage.keys import KeyTable
from runvitals.server.accounts.storage.login_failures import LoginFailureTable
from runvitals.server.accounts.storage.one_time_tokens import OneTimeTokenTable
from runvitals.server.accounts.storage.passkeys import PasskeyTable
from runvitals.server.accounts.storage.pictures import PictureTable
from runvitals.server.accounts.storage.planted import REMOVED, Removed, remove_planted
from runvitals.server.accounts.storage.profiles import ProfileTable
from runvitals.server.accounts.storage.sessions import SessionTable
from runvitals.server.accounts.storage.users import UserTable
from runvitals.server.alerts.storage.team_secrets import TeamSecretTable
from runvitals.server.audit.storage.audit import Actor, AuditFilter, AuditTable
from runvitals.server.audit.storage.audit_webhook import AuditWebhookTable
from runvitals.server.buckets.storage.buckets import BucketTable
from runvitals.server.database.database import Database, StoredTable
from runvitals.server.database.rights_generation import current_generation
from runvitals.server.doors.scim.storage.scim import ScimTable
from runvitals.server.files.storage.storage_places import (
    FileStorage,
    StoragePlace,
    StoredRunPlace,
    file_storage,
    run_storage,
    storage_places,
)
from runvitals.server.mail.storage.drafts import MailDraftTable
from runvitals.server.mail.storage.outgoing_mail import OutgoingMailTable
from runvitals.server.organisation.storage.roles import RoleTable
from runvitals.server.organisation.storage.settings import SettingTable, cursor_key
from runvitals.server.projects.storage.guest_links import GuestLinkTable
from runvitals.server.projects.storage.owned_projects import OwnedProjectTable
from runvitals.server.projects.storage.project_members import ProjectMemberTable
from runvitals.server.projects.storage.project_redirects import ProjectRedirectTable
from runvitals.server.projects.storage.saved_views import SavedViewTable
from runvitals.server.reports.storage.comments import ReportCommentTable
from runvitals.server.reports.storage.editors import ReportEditorTable
from runvitals.server.reports.storage.files import ReportFileTable
from runvitals.server.reports.storage.frozen_panels import FrozenPanelTable
from runvitals.server.reports.storage.notices import ReportNoticeTable
from runvitals.server.reports.storage.pins import ReportPinTable
from runvitals.server.reports.storage.readers import ReportReaderTable
from runvitals.server.reports.storage.report_table import ReportTable
from runvitals.server.reports.storage.share_table import ReportShareTable
from runvitals.server.runs.storage.run_authors import set_author
from runvitals.server.runs.storage.user_runs import AccountContents, UserRun, account_contents, runs_of_user
from runvitals.server.sign_on.storage.jwt_issuers import JwtIssuerTable
from runvitals.server.sign_on.storage.logins import LoginTable
from runvitals.server.teams.storage.group_memberships import GroupMembershipTable
from runvitals.server.teams.storage.invitations import InvitationTable
from runvitals.server.teams.storage.join_requests import JoinRequestTable
from runvitals.server.teams.storage.members import MemberTable
from runvitals.server.teams.storage.service_accounts import ServiceAccountTable
from runvitals.server.teams.storage.teams import TeamTable

T = TypeVar("T")


class AccountStore(StoredTable):
    """Everything about users and teams. All methods are thread-safe.

    Attributes:
        users, profiles, emails, credentials, sessions, one_time_tokens, device_logins, teams, members, roles,
            service_accounts, keys, invitations, join_requests, project_members, saved_views, owned_projects,
            project_redirects, guest_links, scim, settings, audit, outgoing_mail, pictures, logins, passkeys,
            login_failures, group_memberships, jwt_issuers, idempotent_requests, team_secrets,
            audit_webhook, buckets, mail_drafts, reports, report_comments, report_notices, report_pins,
            report_files, report_readers, report_editors, report_shares, frozen_panels: the tables, by what
            they hold.
        ending_access: what ends soon, from several tables.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.settings = SettingTable(database)
        self.users = UserTable(database, self.settings)
        self.profiles = ProfileTable(database)
        self.emails = EmailTable(database)
        self.credentials = CredentialTable(database)
        self.sessions = SessionTable(database)
        self.one_time_tokens = OneTimeTokenTable(database)
        self.device_logins = DeviceLoginTable(database)
        self.teams = TeamTable(database)
        self.members = MemberTable(database)
        self.roles = RoleTable(database)
        self.service_accounts = ServiceAccountTable(database)
        self.keys = KeyTable(database)
        self.invitations = InvitationTable(database)
        self.join_requests = JoinRequestTable(database)
        self.project_members = ProjectMemberTable(database)
        self.saved_views = SavedViewTable(database)
        self.owned_projects = OwnedProjectTable(database)
        self.project_redirects = ProjectRedirectTable(database)
        self.guest_links = GuestLinkTable(database)
        self.ending_access = EndingAccess(database)
        self.scim = ScimTable(database)
        self.audit = AuditTable(database)
        self.buckets = BucketTable(database)
        self.audit_webhook = AuditWebhookTable(database, self.audit)
        self.outgoing_mail = OutgoingMailTable(database)
        self.mail_drafts = MailDraftTable(database)
        self.pictures = PictureTable(database)
        self.logins = LoginTable(database)
        self.passkeys = PasskeyTable(database)
        self.login_failures = LoginFailureTable(database)
        self.group_memberships = GroupMembershipTable(database)
        self.jwt_issuers = JwtIssuerTable(database)
        self.idempotent_requests = IdempotentRequestTable(database)
        self.team_secrets = TeamSecretTable(database)
        self.reports = ReportTable(database)
        self.report_comments = ReportCommentTable(database)
        self.report_notices = ReportNoticeTable(database)
        self.report_shares = ReportShareTable(database)
        self.report_pins = ReportPinTable(database)
        self.report_files = ReportFileTable(database)
        self.frozen_panels = FrozenPanelTable(database)
        self.report_readers = ReportReaderTable(database)
        self.report_editors = ReportEditorTable(database)

    def in_one_transaction(self, work: Callable[[], T]) -> T:
        """As `MetadataStore.in_one_transaction`."""
        return self._database.in_one_transaction(work)

    def runs_of_user(self, user_id: int, limit: int) -> list[UserRun]:
        """The newest runs of a user, wherever they are."""
        return runs_of_user(self._database, user_id, limit)

    def storage_places(self, entity_id: int | None) -> list[StoragePlace]:
        """All projects of a team or user, with their runs."""
        return storage_places(self._database, entity_id)

    def file_storage(self, entity_id: int | None) -> dict[int, FileStorage]:
        """Return the bytes and number of media and files of a team or user, by project id."""
        return file_storage(self._database, entity_id)

    def run_storage(self, entity_id: int | None, project_id: int) -> list[StoredRunPlace]:
        """The runs of a project of a team or user, with what each stores."""
        return run_storage(self._database, entity_id, project_id)

    def contents_of(self, user_id: int) -> AccountContents:
        """Count what a deletion of an account would remove."""
        return account_contents(self._database, user_id)

    def generation(self) -> int:
        """A number that every change of rights raises."""
        return current_generation(self._database)

    def user_grants(self, user_id: int, now_ms: int) -> UserGrants | None:
        """The rights of a user; None if there is no such user."""
        return user_grants(self._database, user_id, now_ms)

    def service_grants(self, account_id: int) -> ServiceGrants | None:
        """The rights of a service account; None if it is disabled or deleted."""
        return service_grants(self._database, account_id)

    def deleted_spaces(self) -> list[int]:
        """The ids of the spaces of deleted users whose projects are still there."""
        with self._database.read() as connection:
            return deleted_spaces(connection)

    def purge_space(self, entity_id: int, by: Actor, now_ms: int) -> None:
        """Leave only the name of a deleted user's space. Remove its projects first."""
        self._database.write(lambda connection: purge_space(connection, entity_id, by, now_ms))

    def release_name(self, name: str, by: Actor, now_ms: int) -> None:
        """Let a deleted user's or team's name be given again; raise NotFound, or NameTaken for one in use."""
        self._database.write(lambda connection: release_name(connection, name, by, now_ms))

    def entity(self, entity_id: int) -> EntityFacts | None:
        """A team or a user's own space; None if there is none with this id."""
        return entity_facts(self._database, entity_id)

    def entity_names(self, entity_ids: Collection[int]) -> dict[int, str]:
        """The names of teams and users by the ids of their entities; ids without one are left out."""
        if not entity_ids:
            return {}
        with self._database.read() as connection:
            return names_of(connection, entity_ids)

    def entity_id(self, name: str) -> int | None:
        """The id of a team or user by its name; None if there is none."""
        return entity_id_of(self._database, name)

    def ensure_organisation(self, now_ms: int) -> int:
        """Return the id of the organisation as an owner of registries."""
        return self._database.write(lambda connection: ensure_organisation(connection, now_ms))

    def set_run_author(self, run_id: int, name: str | None, by: Actor, now_ms: int) -> None:
        """Make an active member of its team, or nobody, the author of a run; raise NotFound or UnknownRun."""
        set_author(self._database, run_id, name, by, now_ms)

    def remove_planted(self, by: Actor, now_ms: int) -> Removed:
        """Remove what requests made before there was an administrator; returns names by what they are.

        Call it before the first administrator is created. It has no effect if there is one.
        """
        return self._database.write(lambda connection: remove_planted(connection, by, now_ms))

    def removed_at_setup(self) -> Removed:
        """All that `remove_planted` has removed, also at attempts to create the administrator that failed."""
        removed: Removed = {}
        for event in self.audit.page(AuditFilter(action=REMOVED)):
            for kind, names in (event.before or {}).items():
                removed[kind] = sorted({*removed.get(kind, ()), *names})
        return removed

    def adopt_earlier_projects(self, team: str, now_ms: int) -> bool:
        """Give a team the projects and tokens from before accounts; returns whether there were any."""
        return adopt_earlier_projects(self._database, team, now_ms)

    def cursor_key(self) -> bytes:
        """The key that signs cursors of lists."""
        return cursor_key(self._database)
