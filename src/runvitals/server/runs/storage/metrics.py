"""Ids of metric keys, and of the lists of keys that batches use.

A metric's id never changes once it is assigned, so ids are cached in memory without invalidation.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from runvitals.model.limits import NAME_CHARACTERS
from runvitals.model.names import plain_text
from runvitals.server.database.database import Database, StoredTable, add_rows, among, ensure_ids, ids_of
from runvitals.server.database.tables.runs import metric, schema, writer, writer_schema
from runvitals.server.database.text import LAST_CHARACTER, checked_name

MAX_KEY = NAME_CHARACTERS
"""Maximum length of a metric's key."""
_MAX_CACHED = 200_000
_MAX_CACHED_NUMBERS = 1_000_000
"""Ids in the lists of keys that are cached, 40 bytes each."""


@dataclass(frozen=True, slots=True)
class KeyList:
    """An ordered list of keys, as the batches of a writer use it: the metrics' ids."""

    id: int
    metric_ids: tuple[int, ...]


class MetricTable(StoredTable):
    """The table of all metrics of all runs.

    Example:
        >>> metadata_store.metrics.ids(["cpu", "gpu.0.powerWatts"])
        {'cpu': 1, 'gpu.0.powerWatts': 2}
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._ids: dict[str, int] = {}
        self._keys: dict[int, str] = {}
        self._schemas: dict[int, KeyList] = {}
        self._schema_numbers = 0
        self._lists: dict[int, KeyList] = {}

    def ids(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the ids of metrics by key; new keys are assigned an id.

        Raises:
            ValueError: a key that is empty, or longer than 512 characters.
        """
        names = {key: checked_name("metric", key, MAX_KEY) for key in keys}
        cached, unknown = self._ids, {plain for plain in names.values() if plain not in self._ids}
        if unknown:
            with self._database.read() as connection:
                ids = ids_of(connection, metric.c.key, unknown)
            missing = unknown - ids.keys()
            if missing:
                ids.update(self._database.write(lambda c: ensure_ids(c, metric.c.key, missing)))
            self._remember(ids)
            return {key: ids.get(plain) or cached[plain] for key, plain in names.items()}
        return {key: cached[plain] for key, plain in names.items()}

    def find(self, keys: Iterable[str]) -> dict[str, int]:
        """Return the ids of those of these keys that any run has."""
        with self._database.read() as connection:
            return ids_of(connection, metric.c.key, map(plain_text, keys))

    def with_prefix(self, prefix: str = "") -> dict[str, int]:
        """Return the ids of all metrics whose keys start with the prefix."""
        first = plain_text(prefix)
        statement = select(metric.c.key, metric.c.id).where(metric.c.key >= first)
        if first:
            statement = statement.where(metric.c.key < first + LAST_CHARACTER)
        with self._database.read() as connection:
            return dict(connection.execute(statement).all())

    def keys(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the keys of metrics by id; unknown ids are left out."""
        numbers = set(ids)
        cached = self._keys  # a full cache is replaced, by this thread or another one
        unknown = numbers - cached.keys()
        keys: dict[int, str] = {}
        if unknown:
            with self._database.read() as connection:
                statement = select(metric.c.id, metric.c.key).where(among(connection, metric.c.id, unknown))
                keys = dict(connection.execute(statement).all())
            self._remember({key: number for number, key in keys.items()})
        return {
            number: keys.get(number) or cached[number]
            for number in numbers
            if number in cached or number in keys
        }

    def _remember(self, ids: dict[str, int]) -> None:
        if len(self._ids) + len(ids) > _MAX_CACHED:
            self._ids, self._keys = {}, {}
        self._ids.update(ids)
        self._keys.update((number, key) for key, number in ids.items())

    def schema(self, keys: Sequence[str]) -> KeyList:
        """Return the list of keys with its id, stored if new; raise ValueError for invalid or equal keys."""
        [schema] = self.schemas([keys])
        return schema

    def schemas(self, lists: Sequence[Sequence[str]]) -> list[KeyList]:
        """Return the same for some hundred lists, in one transaction.

        Raises:
            ValueError: an invalid key, or one that occurs twice in a list.
        """
        ids = self.ids({key for keys in lists for key in keys})
        by_digest: dict[bytes, tuple[int, ...]] = {}
        digests = []
        for keys in lists:
            numbers = tuple(ids[key] for key in keys)
            if len(set(numbers)) != len(numbers):
                duplicate = next(key for index, key in enumerate(keys) if key in keys[:index])
                raise ValueError(f"duplicate metric {duplicate!r} in a list of keys")
            digests.append(hashlib.sha256(pack_numbers(numbers)).digest())
            by_digest[digests[-1]] = numbers
        with self._database.read() as connection:
            ids_by_digest = _schema_ids(connection, by_digest)
        missing = sorted(
            by_digest.keys() - ids_by_digest.keys()
        )  # in order, so that two writers cannot deadlock
        if missing:
            rows = [
                {"digest": missing_digest, "metric_ids": pack_numbers(by_digest[missing_digest])}
                for missing_digest in missing
            ]

            def make(connection: Connection) -> dict[bytes, int]:
                add_rows(connection, schema, rows)
                return _schema_ids(connection, missing)

            ids_by_digest |= self._database.write(make)
        return [KeyList(ids_by_digest[digest], by_digest[digest]) for digest in digests]

    def schema_of(self, schema_id: int) -> KeyList:
        """Return the list of keys with this id.

        Raises:
            LookupError: there is none with this id.
        """
        cached = self._schemas.get(schema_id)
        if cached is not None:
            return cached
        with self._database.read() as connection:
            statement = select(schema.c.metric_ids).where(schema.c.id == schema_id)
            packed = connection.execute(statement).scalar()
        if packed is None:
            raise LookupError(f"unknown schema {schema_id}: send the keys instead")
        keys = KeyList(schema_id, _unpack_numbers(packed))
        self._schema_numbers += len(keys.metric_ids)
        if self._schema_numbers > _MAX_CACHED_NUMBERS:
            self._schemas, self._schema_numbers = {}, len(keys.metric_ids)
        self._schemas[schema_id] = keys
        return keys

    def record_schemas(self, used: Iterable[tuple[int, int]]) -> None:
        """Record which key lists writers used: pairs of writer id and schema id; repetition has no effect."""
        rows = [{"writer_id": a, "schema_id": b} for a, b in sorted(set(used))]
        self._database.write(lambda connection: add_rows(connection, writer_schema, rows))

    def of_run(self, run_id: int) -> dict[int, set[int]]:
        """Return the metrics of a run: their ids by writer id."""
        by_writer = self.lists_of_run(run_id)
        return {
            writer_id: {n for key_list in lists for n in key_list.metric_ids}
            for writer_id, lists in by_writer.items()
        }

    def lists_of_run(self, run_id: int) -> dict[int, list[KeyList]]:
        """Return the key lists that a run's writers used, by writer id, oldest first."""
        statement = (
            select(writer_schema.c.writer_id, writer_schema.c.schema_id)
            .join(writer, writer.c.id == writer_schema.c.writer_id)
            .where(writer.c.run_id == run_id)
        )
        with self._database.read() as connection:
            pairs = sorted((number, writer_id) for writer_id, number in connection.execute(statement))
            lists = self._lists_of(connection, {number for number, _ in pairs})
        by_writer: dict[int, list[KeyList]] = defaultdict(list)
        for number, writer_id in pairs:
            by_writer[writer_id].append(lists[number])
        return dict(by_writer)

    def _lists_of(self, connection: Connection, numbers: set[int]) -> dict[int, KeyList]:
        """Key lists by id, from the cache or the database."""
        cached = self._lists
        unknown = numbers - cached.keys()
        if unknown:
            rows = connection.execute(
                select(schema.c.id, schema.c.metric_ids).where(among(connection, schema.c.id, unknown))
            )
            new = {number: KeyList(number, _unpack_numbers(packed)) for number, packed in rows}
            cached = {**(cached if len(cached) + len(new) <= _MAX_CACHED else {}), **new}
            self._lists = cached
            if numbers - cached.keys():  # the cache was full
                return self._lists_of(connection, numbers)
        return cached

    def added_after(self, metric_id: int) -> dict[int, str]:
        """Return the metrics whose ids are greater than this one: their keys by id."""
        with self._database.read() as connection:
            statement = select(metric.c.id, metric.c.key).where(metric.c.id > metric_id)
            return dict(connection.execute(statement).all())


def _schema_ids(connection: Connection, digests: Collection[bytes]) -> dict[bytes, int]:
    """Return the ids of key lists by the digest, of those that are stored."""
    statement = select(schema.c.digest, schema.c.id).where(schema.c.digest.in_(digests))
    return {bytes(digest): number for digest, number in connection.execute(statement)}


def pack_numbers(numbers: Iterable[int]) -> bytes:
    """Encode a list of metric ids as the table `schema` stores it."""
    packed = array("i", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _unpack_numbers(packed: bytes) -> tuple[int, ...]:
    numbers = array("i", packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return tuple(numbers)
