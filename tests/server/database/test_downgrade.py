"""Back to an earlier revision: the tables are as they were, and what would be lost prevents it."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from sqlalchemy import inspect, text

from runvitals.server.database.database import Database
from runvitals.server.database.migration import FOLDER, downgrade, is_current, migrate
from tests.server.database.conftest import NewAddress
from tests.server.database.postgresql import Server

_numbers = itertools.count()

_ENTITIES = (
    "INSERT INTO entity (id, kind, name, created_ms) VALUES (1, 'team', 'vision', 1), (8, 'user', 'ada', 1)"
)
_USER = """INSERT INTO user_account (id, entity_id, display_name, profile, state, org_role, access,
    billing_role, created_ms, created_via)
    VALUES (2, 8, 'Ada', '{}', 'active', 'member', 'full', 'none', 1, 'cli')"""
_TEAM = """INSERT INTO team (entity_id, display_name, description, default_visibility, hidden, members_invite,
    public_projects, public_links, code_saving)
    VALUES (1, '', '', 'team', false, false, false, false, false)"""
_PROJECT = "INSERT INTO project (id, name, created_ms, entity_id) VALUES (3, 'digits', 1, 1)"
_RUN = """INSERT INTO run (id, uid, project_id, name, group_name, job_type, created_ms, started_ms, last_ms,
    settled_state, entity_id) VALUES (4, 'r', 3, 'r', '', '', 1, 1, 1, 'lost', 1)"""
_ROWS = (_ENTITIES, _USER, _TEAM, _PROJECT, _RUN)
_ANY = "'\\x00'"
_LOSSES = (
    (
        "0035",
        """INSERT INTO alert_rule (entity_id, name, definition, enabled, created_ms, changed_ms)
        VALUES (1, 'idle', '{}', true, 1, 1)""",
        "1 alert rules",
    ),
    (
        "0031",
        """INSERT INTO sweep (project_id, name, source, configuration, state, seed, places, created_ms,
            changed_ms) VALUES (3, 'abcdefgh', '', '{}', 'pending', 1, 0, 1, 1)""",
        "1 sweeps",
    ),
    (
        "0034",
        """INSERT INTO automation (team_id, name, enabled, event, definition, created_ms, changed_ms)
        VALUES (1, 'ends', true, 'run.state', '{}', 1, 1)""",
        "1 automations",
    ),
    (
        "0036",
        """INSERT INTO statement (number, period, scope_kind, scope_id, scope_name, state, created_ms,
            currency, total_micro, settlement, reason)
        VALUES ('RV-2026-000001', '2026-10', 'entity', 1, 'vision', 'issued', 1, 'EUR', 1, '{}', '')""",
        "1 statements were issued",
    ),
    (
        "0036",
        """INSERT INTO rate (category, device_glob, price_micro, valid_from, note, created_by)
        VALUES ('energy', '*', 1, '2026-01-01', '', 'ada')""",
        "1 prices were set",
    ),
    (
        "0036",
        """INSERT INTO cost_centre (code, name, address, contact, purchase_order)
        VALUES ('4711', '', '', '', '')""",
        "1 cost centres",
    ),
    ("0036", "INSERT INTO plan (name, description) VALUES ('large', '')", "1 plans exist"),
    (
        "0036",
        """INSERT INTO usage_run_day (run_id, day, project_id, job_type, state, tracked_ms, host_ms, final)
        VALUES (4, '2026-10-01', 3, '', 'lost', 1, 1, true)""",
        "1 days of usage",
    ),
    (
        "0041",
        """INSERT INTO logged_model (id, uid, project_id, name, status, params, tags, created_ms, changed_ms)
        VALUES (1, 'm-1', 3, 'net', 'LOGGED_MODEL_READY', '{}', '{}', 1, 1);
        INSERT INTO logged_model_metric (model_id, run_uid, key, dataset_name, dataset_digest, value,
            timestamp, step) VALUES (1, 'r1', 'loss', '', '', 0.5, 1, 1)""",
        "1 metrics of logged models",
    ),
    (
        "0030",
        """INSERT INTO registered_model (entity_id, name, tags, aliases, last_version, created_ms, changed_ms)
        VALUES (1, 'digits', '{}', '{}', 0, 1, 1)""",
        "1 registered models",
    ),
    (
        "0028",
        """INSERT INTO wandb_client (run_id, client, host, started_ms, history_lines, event_lines,
            console_lines, row_ms, ended) VALUES (4, '', 'node1', 1, 1, 0, 0, 1, false)""",
        "1 of wandb's clients",
    ),
    (
        "0029",
        "INSERT INTO routing_rules (project_id, data, changed_ms) VALUES (3, '{}', 1)",
        "1 projects have routing rules",
    ),
    (
        "0026",
        """INSERT INTO artifact_collection (project_id, kind, name, type, description, tags, next_version,
            created_ms, updated_ms) VALUES (3, 'sequence', 'mnist', 'dataset', '', '[]', 0, 1, 1)""",
        "1 collections of artifacts",
    ),
    (
        "0025",
        """INSERT INTO saved_view (project_id, kind, name, data, revision, changed_ms)
        VALUES (3, 'runs', 'best', '{}', 1, 1)""",
        "1 saved views",
    ),
    (
        "0023",
        f"""INSERT INTO audit_webhook (id, url, sealed, created_ms, sent_id, gaps)
        VALUES (1, 'https://logs.example', {_ANY}, 1, 1, '{{}}')""",
        "the audit log is sent",
    ),
    (
        "0023",
        """INSERT INTO jwt_issuer (name, url, audience, enabled, created_ms, pasted_keys)
        VALUES ('ci', 'https://ci.example', 'us', true, 1, '{}')""",
        "1 token issuers",
    ),
    (
        "0022",
        f"""INSERT INTO team_secret (team_id, name, sealed, created_ms, changed_ms)
        VALUES (1, 'T', {_ANY}, 1, 1)""",
        "1 secrets",
    ),
    (
        "0022",
        """INSERT INTO team_webhook (team_id, name, url, enabled, created_ms)
        VALUES (1, 'ci', 'https://ci.example', true, 1)""",
        "1 webhooks",
    ),
    (
        "0022",
        f"""INSERT INTO slack_destination (team_id, channel, sealed, shown, created_ms)
        VALUES (1, '#runs', {_ANY}, '', 1)""",
        "1 Slack destinations",
    ),
    (
        "0020",
        f"""INSERT INTO passkey (user_id, credential_id, public_key, sign_count, transports, backed_up, name,
            created_ms) VALUES (2, {_ANY}, {_ANY}, 0, '', false, 'phone', 1)""",
        "1 passkeys",
    ),
    (
        "0017",
        f"INSERT INTO stored_file (sha256, bytes, media_type, created_ms) VALUES ('{'a' * 64}', 1, 'x', 1)",
        "1 files",
    ),
    (
        "0016",
        "INSERT INTO group_administrator (user_id, provider) VALUES (2, 'lab')",
        "1 users administer the organisation because of a provider's group",
    ),
    (
        "0015",
        "INSERT INTO project_redirect (entity_id, name, project_id, created_ms) VALUES (1, 'old', 3, 1)",
        "addresses of 1 projects",
    ),
    (
        "0019",
        "INSERT INTO team_join_request (team_id, user_id, message, created_ms, state) "
        "VALUES (1, 2, '', 1, 'pending')",
        "1 requests to join teams",
    ),
    ("0019", "UPDATE team SET join_by_domain = 'auto'", "1 teams may be joined"),
    ("0019", "UPDATE team SET recommend_by_domain = true", "set team.join_domains to '\\[\\]'"),
    (
        "0019",
        """INSERT INTO audit_event (time_ms, action, outcome, actor_kind, actor_name, via, request_id)
        VALUES (1, 'run.delete', 'ok', 'user', 'ada', 'session', 'f00')""",
        "1 events of the audit log have the id of a request",
    ),
    ("0014", "INSERT INTO scim_resource (entity_id) VALUES (8)", "1 users and teams by names of its own"),
    ("0013", "UPDATE project SET deleted_ms = 1", "1 projects in the trash"),
    ("0013", "UPDATE project SET description = 'x'", "1 projects have a description"),
    ("0013", "UPDATE project SET overview = 'x'", "1 projects have a description"),
    ("0013", "INSERT INTO project_star (project_id, user_id) VALUES (3, 2)", "1 stars"),
    ("0012", "UPDATE team SET kind = 'academic'", "1 teams have a type"),
    ("0012", "UPDATE team SET profile = '{ }'", "set team.kind .* and profile to '{}'"),
    (
        "0012",
        """INSERT INTO audit_event (time_ms, action, outcome, actor_kind, actor_name, via, run)
        VALUES (1, 'run.delete', 'ok', 'user', 'ada', 'session', 'otter-1')""",
        "1 events of the audit log",
    ),
    (
        "0012",
        f"""INSERT INTO invitation (role, org_role, digest, created_ms, sent_ms, sends, expires_ms, state,
            user_id) VALUES ('member', 'member', {_ANY}, 1, 1, 1, 9, 'pending', 2)""",
        "1 invitations are to users",
    ),
    (
        "0011",
        """INSERT INTO login (user_id, provider, issuer, subject, label, created_ms)
        VALUES (2, 'github', 'https://github.com', '7', 'ada', 1)""",
        "1 logins",
    ),
    (
        "0011",
        """INSERT INTO jwt_issuer (name, url, audience, enabled, created_ms)
        VALUES ('ci', 'https://ci.example', 'runvitals', true, 1)""",
        "1 other services",
    ),
    (
        "0009",
        f"INSERT INTO picture (id, digest, large, small) VALUES (4, 'ab', {_ANY}, {_ANY});"
        "INSERT INTO entity_picture (entity_id, picture_id) VALUES (1, 4)",
        "1 users and teams have a picture",
    ),
    (
        "0008",
        """INSERT INTO outgoing_mail (message_id, kind, address, address_key, security, created_ms, next_ms,
            give_up_ms, tries, state)
        VALUES ('m', 'reset_password', 'a@b.c', 'a@b.c', true, 1, 1, 9, 0, 'waiting')""",
        "1 mails wait",
    ),
)


@pytest.fixture
def database(empty: NewAddress) -> Iterator[Database]:
    database = Database(empty())
    yield database
    database.close()


@cache
def stages() -> dict[tuple[str, str], str]:
    """Databases with the rows above, by kind and revision, which are only copied."""
    return {}


@pytest.fixture
def database_at(
    kind: str, empty: NewAddress, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Database]]:
    """Makes a database at a revision, with the rows above, from a copy of one at an earlier revision."""
    opened = []

    def copy(address: str) -> str:
        if kind == "sqlite":
            return str(shutil.copy(address, tmp_path_factory.mktemp("stage")))
        server: Server = request.getfixturevalue("postgresql")
        return server.make(
            f"stage_{os.getpid()}_{next(_numbers)}", address.partition("?")[0].rpartition("/")[2]
        )

    revisions = chain()

    def at(revision: str) -> Database:
        before = [known for known in revisions[: revisions.index(revision) + 1] if (kind, known) in stages()]
        earlier = before[-1] if before else None
        if earlier != revision:
            address = empty() if earlier is None else copy(stages()[kind, earlier])
            database = Database(address)
            migrate(database, revision)
            for statement in () if earlier else _ROWS:
                run(database, statement)
            database.close()
            stages()[kind, revision] = address
        opened.append(Database(copy(stages()[kind, revision])))
        return opened[-1]

    yield at
    for database in opened:
        database.close()


def run(database: Database, statement: str) -> None:
    database.write(lambda connection: connection.execute(text(statement)))


def shape(database: Database) -> dict[str, object]:
    """Tables with their columns, indexes and foreign keys."""
    with database.read() as connection:
        inspector = inspect(connection)
        # Of all tables at once: on PostgreSQL that is a query each, not one for each table.
        columns, indexes = inspector.get_multi_columns(), inspector.get_multi_indexes()
        keys = inspector.get_multi_foreign_keys()
        return {
            str(table[1]): (
                [(column["name"], str(column["type"]), column["nullable"]) for column in columns[table]],
                sorted((str(index["name"]), index["unique"]) for index in indexes[table]),
                sorted(str(key["name"]) for key in keys[table]),
            )
            for table in columns
        }


def chain() -> list[str]:
    """All revisions, the oldest first."""
    from alembic.script import ScriptDirectory

    return [script.revision for script in ScriptDirectory(FOLDER).walk_revisions()][::-1]


@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection of expression-based index")
def test_each_revision_back_and_forth(database: Database) -> None:
    shapes = {}
    revisions = chain()[chain().index("0007") :]
    for revision in revisions:
        migrate(database, revision)
        shapes[revision] = shape(database)
    for statement in _ROWS:
        run(database, statement)
    for revision in reversed(revisions[:-1]):
        downgrade(database, revision)
        assert is_current(database, revision)
        assert shape(database) == shapes[revision]
    migrate(database)
    assert shape(database) == shapes[revisions[-1]]
    with database.read() as connection:
        assert connection.execute(text("SELECT name FROM project")).scalars().all() == ["digits"]
        assert connection.execute(text("SELECT kind FROM team")).scalars().all() == ["work"]


@pytest.mark.parametrize(("revision", "change", "why"), sorted(_LOSSES))
def test_nothing_is_lost(
    database_at: Callable[[str], Database], revision: str, change: str, why: str
) -> None:
    database = database_at(revision)
    for statement in change.split(";"):
        run(database, statement)
    with pytest.raises(RuntimeError, match=f"cannot return to the revision before {revision}: .*{why}"):
        downgrade(database, chain()[chain().index(revision) - 1])
    assert is_current(database, revision)
