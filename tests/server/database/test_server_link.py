"""Servers that share a metadata store: one leads, and they hear from each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import text

from runvitals.server.database.database import Database
from runvitals.server.database.server_link import Message, ServerLink
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.log_summaries import LoggedRows
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.errors import MetadataStoreUnavailable
from tests.patience import eventually


class Linked:
    """A server, as far as its link goes."""

    def __init__(self, address: str) -> None:
        self.store: MetadataStore = open_metadata_store(address)
        self.heard: list[Message] = []
        self.gaps = 0
        self.link: ServerLink = self.store.join_servers(self.heard.append, self._missed)
        self.link.thread.start()

    def _missed(self) -> None:
        self.gaps += 1

    def close(self) -> None:
        self.link.close()
        self.store.close()


@contextmanager
def servers(address: str, count: int) -> Iterator[list[Linked]]:
    linked = [Linked(address) for _ in range(count)]
    try:
        yield linked
    finally:
        for link in linked:
            link.close()


def end_connections(address: str) -> None:
    """End those of all links, as when the database restarts."""
    database = Database(address)
    holders = "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2"
    with database.engine.connect() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend(pid) FROM ({holders}) AS holder"))
    database.close()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_server_on_sqlite_leads_alone(address: str) -> None:
    with servers(address, 1) as [alone]:
        assert alone.link.is_leader
        assert alone.link.number == 0
        alone.link.publish("runs", {1: 0})


@pytest.mark.parametrize("kind", ["postgresql"])
def test_one_leads_and_another_when_it_ends(address: str) -> None:
    with servers(address, 3) as linked:
        assert [link.link.is_leader for link in linked] == [True, False, False]
        assert len({link.link.number for link in linked}) == 3
        linked[0].link.close()
        eventually(lambda: sum(link.link.is_leader for link in linked[1:]) == 1)
        assert not linked[0].link.is_leader


@pytest.mark.parametrize("kind", ["postgresql"])
def test_all_others_hear_what_one_publishes(address: str) -> None:
    with servers(address, 3) as linked:
        linked[1].link.publish("runs", dict.fromkeys(range(1000), 0))
        for link in (linked[0], linked[2]):
            eventually(lambda link=link: sum(len(message["items"]) for message in link.heard) == 1000)
            assert {message["kind"] for message in link.heard} == {"runs"}
        assert linked[1].heard == []


@pytest.mark.parametrize("kind", ["postgresql"])
def test_a_lost_connection_is_made_again(address: str) -> None:
    with servers(address, 2) as linked:
        end_connections(address)
        eventually(lambda: all(link.gaps for link in linked))
        eventually(lambda: sum(link.link.is_leader for link in linked) == 1)
        linked[0].link.publish("runs", {7: 0})
        eventually(lambda: any(message["items"] == [[7, 0]] for message in linked[1].heard))


@pytest.mark.parametrize("kind", ["postgresql"])
def test_what_could_not_be_sent_is_sent_when_the_connection_is_back(address: str) -> None:
    with servers(address, 1) as [other]:
        sender = open_metadata_store(address)
        link = sender.join_servers(lambda message: None, lambda: None)  # its thread does not run
        link.publish("runs", {7: 0, 8: 0})
        other.link.thread.close()  # it must not miss the message, and keeps its connection
        holder = f"SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = {link.number}"
        database = Database(address)
        with database.engine.connect() as connection:
            connection.execute(text(f"SELECT pg_terminate_backend(({holder}))"))
        database.close()
        with pytest.raises(MetadataStoreUnavailable, match="the link to the other servers failed: "):
            link._turn()
        link.publish("runs", {8: 1})
        link._turn()
        other.link._receive()
        (message,) = other.heard
        assert message["items"] == [[7, 0], [8, 1]]
        link.close()
        sender.close()


@pytest.mark.parametrize("kind", ["postgresql"])
def test_summaries_of_a_server_that_ended_are_incomplete(address: str) -> None:
    with servers(address, 2) as [first, second]:
        writer = WriterRegistration("abc", "train.n1", "digits")
        [joined] = first.store.writers.join([writer], 1_760_000_000_000)
        rows: Any = _Rows(joined.run_id)
        first.store.pending_summaries.add([rows])
        assert second.store.pending_summaries.incomplete() == []
        first.link.close()
        eventually(lambda: second.store.pending_summaries.incomplete() == [joined.run_id])
        second.store.pending_summaries.restore_shared(joined.run_id, lambda: rows.rows({}))
        assert second.store.pending_summaries.incomplete() == []


class _Rows:
    """Rows of `log()` without metrics."""

    writer, names, metric_ids = "train.n1", 1, ()

    def __init__(self, run_id: int) -> None:
        self.run_id = run_id

    def rows(self, keys: object, what: str = "sent") -> Any:
        return LoggedRows(self.run_id, self.writer, self.names, 1, {}, "sent")
