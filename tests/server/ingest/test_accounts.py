"""Which keys may send what, to whom it belongs, and what a key is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import event

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.projects.storage.projects import ProjectOwner, ensure_projects
from tests.server.ingest.accounts import AccountServer, envelope
from tests.server.ingest.server import NOW


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AccountServer]:
    server = AccountServer(str(tmp_path))
    yield server
    server.close()


def refused(response: Any) -> str:
    """The reason of a rejection for rights: of these the relay keeps its journal."""
    assert response.status_code == 403, response.text
    text: str = response.json()["error"]
    return text


def test_a_run_goes_to_the_team_that_the_envelope_names(server: AccountServer) -> None:
    assert server.send("ada", envelope(entity="Vision", project="digits")).status_code == 200
    run = server.run("abc", "vision")
    assert (run.project, run.service_account) == ("digits", None)
    assert run.author is not None
    assert run.author.name == "ada"
    project = server.metadata_store.accounts.project_members.get(run.project_id)
    assert (project.owner_id, project.visibility) == (server.users["ada"], "team")


def test_without_an_entity_a_run_goes_to_the_owner_of_the_key(server: AccountServer) -> None:
    assert server.send("ada", envelope()).status_code == 200
    assert server.send("ci", envelope("def")).status_code == 200
    assert server.entities("abc") == ["ada"]
    run = server.run("def", "vision")
    assert (run.project, run.author) == ("default", None)
    assert run.service_account is not None
    assert run.service_account.name == "ci"
    server.metadata_store.accounts.profiles.put(
        server.users["bob"], {"default_entity_id": server.speech}, CLI, NOW
    )
    server.rights_changed()
    assert server.send("bob", envelope("ghi")).status_code == 200
    assert server.entities("ghi") == ["speech"]


def test_later_envelopes_need_not_name_the_entity(server: AccountServer) -> None:
    server.send("ada", envelope(entity="vision"))
    ack = server.send("ada", envelope(seq=2)).json()
    assert (ack["stored"], server.entities("abc")) == (True, ["vision"])
    other, _ = server.metadata_store.accounts.keys.create("2", CLI, NOW, user_id=server.users["ada"])
    assert server.send(other, envelope(seq=3)).status_code == 200
    assert server.entities("abc") == ["vision"]
    assert server.send("bob", envelope(seq=4)).status_code == 200  # a run of their own
    assert server.entities("abc") == ["vision", "bob"]


def test_the_same_run_id_in_two_teams(server: AccountServer) -> None:
    first = server.send("ada", envelope(entity="vision")).json()
    second = server.send("bob", envelope(entity="speech")).json()
    assert (first["stored"], second["stored"]) == (True, True)
    assert server.entities("abc") == ["vision", "speech"]
    assert len(server.store.read(server.store.active_runs(0), None, 0, 2 * NOW).series) == 2


@pytest.mark.parametrize("entity", ["nobody", "speech", "bob"])
def test_an_entity_that_one_may_not_read_is_as_one_that_is_not_there(
    server: AccountServer, entity: str
) -> None:
    server.send("bob", envelope(entity="speech", project="digits"))
    for project in ("digits", "letters"):
        for run in ("abc", "def"):
            text = refused(server.send("ada", envelope(run, entity=entity, project=project)))
            assert text == f"there is no entity {entity!r} that this key may log to"
    assert server.runs() == 1


def test_who_may_only_look(server: AccountServer) -> None:
    server.send("ada", envelope(entity="vision", project="digits"))
    looking = refused(server.send("vic", envelope("def", entity="vision", project="digits")))
    assert looking == "vic may look at vision/digits, not log to it"
    creating = refused(server.send("vic", envelope("def", entity="vision", project="new")))
    assert creating == "vic may not create projects in vision"
    assert refused(server.send("vic", envelope(entity="vision"))) == looking
    accounts = server.metadata_store.accounts
    accounts.owned_projects.update(server.run("abc", "vision").project_id, CLI, NOW, visibility="public")
    server.rights_changed()
    public = refused(server.send("bob", envelope("def", entity="vision", project="digits")))
    assert public == "bob may look at vision/digits, not log to it"
    assert server.runs() == 1


@pytest.mark.parametrize("name", [".", "..", "-", "a/b", "a\\b", "a\nb", "a\u200bb", "\u202eab", "a\u00a0b"])
def test_a_project_that_could_not_be_addressed_or_passes_for_another_is_not_created(
    server: AccountServer, name: str
) -> None:
    text = refused(server.send("ada", envelope(entity="vision", project=name)))
    assert text == (
        f"invalid project name {name!a}; expected a name without / \\, control or invisible characters "
        "that is not ., .. or -"
    )
    assert server.runs() == 0
    old = ProjectOwner(server.vision)  # from before this rule
    server.metadata_store.write(lambda connection: ensure_projects(connection, [(name, old)], NOW))
    server.rights_changed()
    assert server.send("ada", envelope(entity="vision", project=name)).status_code == 200


def test_an_open_project_takes_runs_of_everybody_but_not_into_those_of_others(server: AccountServer) -> None:
    server.send("ada", envelope(entity="vision", project="digits"))
    accounts = server.metadata_store.accounts
    accounts.owned_projects.update(server.run("abc", "vision").project_id, CLI, NOW, visibility="open")
    server.rights_changed()
    assert server.send("bob", envelope("def", entity="vision", project="digits")).status_code == 200
    assert server.send("bob", envelope("def", 2, entity="vision")).status_code == 200
    into = refused(server.send("bob", envelope("abc", 2, entity="vision")))
    assert into == "the run 'abc' is somebody else's, and bob may not write to it"
    assert refused(server.send("bob", envelope("ghi", entity="vision", project="new"))).startswith(
        "there is no"
    )


def test_a_restricted_project_is_not_named_to_who_may_not_see_it(server: AccountServer) -> None:
    server.send("ada", envelope(entity="vision", project="secret"))
    accounts = server.metadata_store.accounts
    project_id = server.run("abc", "vision").project_id
    accounts.owned_projects.update(project_id, CLI, NOW, visibility="restricted")
    server.rights_changed()
    hidden = refused(server.send("ci", envelope("def", entity="vision", project="secret")))
    assert hidden == "there is no project vision/secret that this key may log to"
    accounts.project_members.add(project_id, CLI, NOW, service_account_id=server.ci)
    server.rights_changed()
    assert server.send("ci", envelope("def", entity="vision", project="secret")).status_code == 200


def test_members_may_send_ranks_of_one_run(server: AccountServer) -> None:
    server.send("ada", envelope(entity="vision"))
    assert server.send("ci", envelope(entity="vision", writer="w2")).status_code == 200
    run = server.run("abc", "vision")
    assert run.author is not None
    assert (run.author.name, run.service_account) == ("ada", None)


def test_a_list_with_one_rejected_envelope_is_rejected_as_a_whole(server: AccountServer) -> None:
    good, bad = envelope(entity="vision", project="digits"), envelope("def", entity="speech")
    response = server.send("ada", good, bad)
    assert refused(response) == "envelope 1: there is no entity 'speech' that this key may log to"
    assert response.json()["index"] == 1
    assert server.runs() == 0
    assert server.metadata_store.projects.named("digits") == []


def test_a_record_moves_a_run_only_where_its_key_may_log(server: AccountServer) -> None:
    def moved(key: str, project: str, seq: int, **more: Any) -> Any:
        records = [[seq, "info", {"t": NOW + seq, "run": {"project": project}}]]
        return server.send(
            key, {"run": "abc", "writer": "w", "seq": seq, "entity": "vision", "records": records, **more}
        )

    server.send("ada", envelope("other", entity="vision", project="secret"))
    secret = server.run("other", "vision").project_id
    server.metadata_store.accounts.owned_projects.update(secret, CLI, NOW, visibility="restricted")
    server.rights_changed()
    server.send("ci", envelope(entity="vision", project="digits"))
    assert refused(moved("ci", "secret", 2)) == "there is no project vision/secret that this key may log to"
    assert server.run("abc", "vision").project == "digits"
    assert moved("ci", "digits", 3).status_code == 200
    assert moved("ci", "letters", 4).status_code == 200
    assert server.run("abc", "vision").project == "letters"
    server.metadata_store.accounts.members.add("vision", "bob", "member", CLI, NOW)
    server.rights_changed()
    text = refused(moved("bob", "digits", 5))
    assert text == "the run 'abc' is somebody else's, and bob may not move it"


def test_no_empty_project_is_created_beside_that_of_a_run(server: AccountServer) -> None:
    def projects() -> list[str]:
        rows = server.metadata_store.accounts.project_members.of_entity(server.vision)
        return sorted(row.name for row in rows)

    # Only the first envelope of a writer names the project.
    first = envelope("one", entity="vision", project="digits")
    assert server.send("ci", first, envelope("one", 2, entity="vision")).status_code == 200
    assert projects() == ["digits"]
    # Another one of the request does.
    other = envelope("two", 1, entity="vision", project="letters") | {"writer": "v"}
    assert server.send("ci", envelope("two", entity="vision"), other).status_code == 200
    assert projects() == ["digits", "letters"]
    # Its records do.
    records = [[1, "info", {"t": NOW, "run": {"project": "numbers"}}]]
    named = {"run": "three", "writer": "w", "seq": 1, "entity": "vision", "records": records}
    assert server.send("ci", named).status_code == 200
    assert projects() == ["digits", "letters", "numbers"]
    assert [server.run(uid, "vision").project for uid in ("one", "two", "three")] == projects()
    # Nothing does.
    assert server.send("ci", envelope("four", entity="vision")).status_code == 200
    assert projects() == ["default", "digits", "letters", "numbers"]


@pytest.mark.parametrize(("scope", "status"), [("ingest", 200), ("write", 200), ("full", 200), ("read", 403)])
def test_scopes_of_keys(server: AccountServer, scope: str, status: int) -> None:
    keys = server.metadata_store.accounts.keys
    secret, _ = keys.create(scope, CLI, NOW, user_id=server.users["ada"], scope=scope)
    assert server.send(secret, envelope(entity="vision")).status_code == status
    elsewhere, _ = keys.create("x", CLI, NOW, user_id=server.users["ada"], entities=[server.users["ada"]])
    assert refused(server.send(elsewhere, envelope("def", entity="vision"))).startswith("there is no")


def test_a_request_without_a_key_is_not_stored(server: AccountServer) -> None:
    response = server.post(b"{}")
    assert response.status_code == 401
    assert "a key is required" in response.json()["error"]
    assert server.send("rvt-nonsense", envelope()).status_code == 401


def test_a_team_decides_who_sees_its_new_projects(server: AccountServer) -> None:
    accounts = server.metadata_store.accounts
    for visibility, of_person, of_service in (
        ("public", "public", "public"),
        ("restricted", "restricted", "restricted"),
        ("private", "private", "restricted"),
    ):
        accounts.teams.update("vision", CLI, NOW, default_visibility=visibility)
        server.rights_changed()
        for key, expected in (("ada", of_person), ("ci", of_service)):
            run = f"{visibility}-{key}"
            sent = envelope(run, entity="vision", project=run)
            assert server.send(key, sent).status_code == 200
            assert server.send(key, {**sent, "seq": 2}).status_code == 200
            project_id = server.run(run, "vision").project_id
            assert accounts.project_members.get(project_id).visibility == expected
    accounts.teams.update("vision", CLI, NOW, default_visibility="open", public_projects=False)
    server.rights_changed()
    server.send("ada", envelope("off", entity="vision", project="off"))
    assert accounts.project_members.get(server.run("off", "vision").project_id).visibility == "team"


def test_a_run_that_was_deleted_for_good_gets_no_more(server: AccountServer) -> None:
    server.send("ada", envelope(entity="vision"))
    run = server.run("abc", "vision")
    server.metadata_store.runs.delete([run.id], NOW)
    server.recorder.heartbeats.flush()
    assert server.send("ada", envelope(seq=2, entity="vision")).json()["deleted"]
    server.metadata_store.runs.purge([run.id], NOW)
    server.recorder.forget([run.id])
    for seq in (3, 4):
        ack = server.send("ada", envelope(seq=seq, entity="vision")).json()
        assert (ack["deleted"], ack["stored"]) == (True, False)
    assert server.runs() == 0


def test_known_envelopes_are_decided_without_a_look_up(server: AccountServer) -> None:
    async def fast(seq: int, **more: Any) -> bool:
        accepted = server.post_fast("ada", envelope(seq=seq, **more))
        while server.recorder.sample_commits.batches:
            await anyio.sleep(0.001)
        return accepted

    server.metadata_store.accounts.members.add("vision", "bob", "admin", CLI, NOW)
    server.rights_changed()
    assert not anyio.run(fast, 1)
    server.send("ada", envelope(seq=1, entity="vision"))
    server.send("ada", envelope(seq=2))
    with statements(server) as executed:
        assert anyio.run(fast, 3)
        assert executed == []
    server.metadata_store.accounts.members.set_role("vision", "ada", "viewer", CLI, NOW)
    server.rights_changed()
    assert not anyio.run(fast, 4)
    assert refused(server.send("ada", envelope(seq=4))) == "ada may look at vision/default, not log to it"


@contextmanager
def statements(server: AccountServer) -> Iterator[list[str]]:
    """The statements that the metadata store executes meanwhile."""
    executed: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *others: Any) -> None:
        executed.append(statement)

    engine = server.metadata_store._database.engine
    event.listen(engine, "before_cursor_execute", note)
    yield executed
    event.remove(engine, "before_cursor_execute", note)


ADDRESSES = {"ada": "ada@example.com", "bob": "bob@example.com", "vic": "vic@example.com"}
NAME, EMAIL = "X-Runvitals-Username", "X-Runvitals-User-Email"


@pytest.fixture
def people(server: AccountServer) -> AccountServer:
    """Everybody has a verified address, and `eve` one that is not verified."""
    accounts = server.metadata_store.accounts
    accounts.users.create("eve", CLI, NOW, address="eve@example.com")
    accounts.members.add("vision", "eve", "member", CLI, NOW)
    for name, address in ADDRESSES.items():
        row = accounts.emails.add(server.users[name], address, CLI, NOW)
        accounts.emails.verify(row.id, CLI, NOW)
    server.rights_changed()
    return server


@pytest.mark.parametrize(
    ("headers", "author"),
    [
        ({}, None),
        ({NAME: "vic"}, "vic"),  # any member of the team, also one that may only look
        ({NAME: "Ada"}, "ada"),
        ({NAME: "bob"}, None),  # of another team
        ({NAME: "nobody"}, None),
        ({NAME: "eve"}, None),  # not active: the address is not verified
        ({NAME: "vision"}, None),  # a team is no user
        ({EMAIL: "ada@example.com"}, "ada"),
        ({EMAIL: "ADA@Example.com"}, "ada"),
        ({EMAIL: "bob@example.com"}, None),
        ({EMAIL: "eve@example.com"}, None),
        ({EMAIL: "nonsense"}, None),
        ({NAME: "vic", EMAIL: "ada@example.com"}, "vic"),  # the user name takes precedence
        ({NAME: "nobody", EMAIL: "ada@example.com"}, None),
        ({"X-WANDB-USERNAME": "ada"}, "ada"),
        ({"X-WANDB-USER-EMAIL": "ada@example.com"}, "ada"),
        ({NAME: "vic", "X-WANDB-USERNAME": "ada"}, "vic"),
    ],
)
@pytest.mark.parametrize("entity", [{"entity": "vision"}, {}])
def test_a_service_account_attributes_runs_to_members_of_the_team(
    people: AccountServer, headers: dict[str, str], author: str | None, entity: dict[str, str]
) -> None:
    assert people.send("ci", envelope(**entity), **headers).status_code == 200
    run = people.run("abc", "vision")
    assert run.service_account is not None
    assert run.service_account.name == "ci"
    assert (run.author.name if run.author else None) == author
    events = people.metadata_store.events.of_run(run.id, name="attribution_ignored")
    assert len(events) == (1 if headers and author is None else 0)
    people.send("ci", envelope(seq=2, writer="w2", **entity), **headers)
    assert len(people.metadata_store.events.of_run(run.id, name="attribution_ignored")) == len(events)


def test_unknown_users_and_those_of_other_teams_get_the_same_text(people: AccountServer) -> None:
    texts = set()
    for run, name in (("a", "bob"), ("b", "nobody"), ("c", "eve")):
        people.send("ci", envelope(run), **{NAME: name})
        [event] = people.metadata_store.events.of_run(
            people.run(run, "vision").id, name="attribution_ignored"
        )
        texts.add(event.text)
    assert texts == {"the user name given for this run belongs to no active member of its team"}


def test_the_author_is_fixed_with_the_first_envelope(people: AccountServer) -> None:
    people.send("ci", envelope(), **{NAME: "ada"})
    people.send("ci", envelope(seq=2, writer="w2"), **{NAME: "vic"})
    people.send("ci", envelope(seq=3, writer="w3"))
    run = people.run("abc", "vision")
    assert run.author is not None
    assert run.author.name == "ada"


def test_keys_of_users_attribute_to_nobody_else(people: AccountServer) -> None:
    people.send("ada", envelope(entity="vision"), **{NAME: "vic"})
    run = people.run("abc", "vision")
    assert run.author is not None
    assert run.author.name == "ada"
    assert people.metadata_store.events.of_run(run.id, name="attribution_ignored") == []


@pytest.mark.parametrize(("name", "author"), [("ada", None), ("bob", "bob")])
def test_in_an_open_project_of_another_team_only_its_members_are_authors(
    people: AccountServer, name: str, author: str | None
) -> None:
    people.send("bob", envelope("first", entity="speech", project="digits"))
    project_id = people.run("first", "speech").project_id
    people.metadata_store.accounts.owned_projects.update(project_id, CLI, NOW, visibility="open")
    people.rights_changed()
    sent = envelope(entity="speech", project="digits")
    assert people.send("ci", sent, **{NAME: name}).status_code == 200
    assert people.send("ci", {**sent, "seq": 2}, **{NAME: name}).status_code == 200
    run = people.run("abc", "speech")
    assert (run.author.name if run.author else None) == author


def test_without_own_spaces_a_run_must_name_a_team(server: AccountServer) -> None:
    settings = server.metadata_store.accounts.settings
    assert server.send("ada", envelope(project="mine")).status_code == 200
    settings.put({"personal_entities": False}, CLI, NOW)
    server.rights_changed()
    assert "entity is missing" in refused(server.send("ada", envelope("new")))
    assert "may not create projects" in refused(server.send("ada", envelope("new", entity="ada")))
    assert "not log to it" in refused(server.send("ada", envelope(entity="ada", project="mine")))
    assert server.send("ada", envelope("new", entity="vision")).status_code == 200
    assert server.send("ci", envelope("other")).status_code == 200
    settings.put({"personal_entities": True}, CLI, NOW)
    server.rights_changed()
    assert server.send("ada", envelope(project="mine")).status_code == 200


def test_new_projects_of_users_have_the_visibility_that_was_chosen(server: AccountServer) -> None:
    accounts = server.metadata_store.accounts
    accounts.settings.put({"personal_visibility": "organisation"}, CLI, NOW)
    server.rights_changed()

    def visibility(uid: str, project: str) -> str:
        assert server.send("ada", envelope(uid, project=project)).status_code == 200
        return accounts.project_members.get(server.run(uid, "ada").project_id).visibility

    assert visibility("first", "one") == "organisation"
    accounts.profiles.put(server.users["ada"], {"default_visibility": "team"}, CLI, NOW)
    server.rights_changed()
    assert visibility("second", "two") == "team"
