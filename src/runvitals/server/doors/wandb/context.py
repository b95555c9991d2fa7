"""`info.context`, which the functions of GraphQL fields work with."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

import anyio
from fastapi import HTTPException, Request

from runvitals.base import deadline
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import ServiceAccount, User
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.http.workers import DEADLINE_S
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.service_parameters import access_of
from runvitals.server.services import SharedServices, shared_services_of

if TYPE_CHECKING:
    from graphql import GraphQLResolveInfo

    from runvitals.server.access.resources import Entity
    from runvitals.server.library.run_library import RunView
    from runvitals.server.runs.storage.run_rows import RunRow

    Info = GraphQLResolveInfo["GraphQLContext"]
    """The argument `info` of the functions of fields."""

T = TypeVar("T")
MAX_READS: Final = 3000
MAX_ID: Final = 2**31 - 1
MAX_ROWS: Final = 20_000
MAX_VALUES: Final = 250_000
"""Values of a response, each row of a history as one. They are put together in the event loop: 10,000 fields
take 0.1 s. The addresses for 20,000 files of an artifact are 220,000 values."""
MAX_CPU_S: Final = 3.0
"""The most processor time of the threads that find the values of a response."""
MAX_TEXT: Final = 16 << 20
"""The most characters of all texts of a response."""
_READS_AT_ONCE: Final = 3
_FIELDS_AT_ONCE: Final = 2
_LIST_ROWS: Final = 25
"""To read a list costs as much as this many rows, even if it is empty."""
WITHOUT_ACCOUNTS: Final = "main"
"""The entity that clients see on a server without accounts; they may send any other name."""


@dataclass(frozen=True, slots=True)
class EntityNode:
    """A team or a user's own space, for the type `Entity`. `number`: None on a server without accounts."""

    number: int | None
    name: str
    is_team: bool = True

    @property
    def id(self) -> str:
        """The id of the entity in GraphQL."""
        return node_id("Entity", self.number or 0)

    @property
    def entity_type(self) -> str:
        """`team` or `user`."""
        return "team" if self.is_team else "user"


class GraphQLContext:
    """A request, with the services that it needs.

    Args:
        requester: who asked for the signed address of the request; None: whoever makes it.
        cpu_clock: the processor time of the present thread, s.

    Attributes:
        resolving: held while a field is found in a thread. The other fields of the request wait here, and not
            where those of other clients wait.
        names_of_projects: by what name the request asked for a project of another name.
        follows_viewer: whether the client's previous request asked whose key it uses.
    """

    def __init__(
        self,
        request: Request,
        requester: Requester | None = None,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.request = request
        self.requester = requester or requester_of(request)
        self.follows_viewer = False
        self.names_of_projects: dict[str, str] = {}
        self._read = 0
        self._rows = self._values = self._text = 0
        self._until_s = time.monotonic() + DEADLINE_S
        self._cpu_clock = cpu_clock
        self._cpu_s = 0.0
        self._refusal: InvalidArgument | None = None
        self._reading = anyio.Semaphore(_READS_AT_ONCE)
        self.resolving = anyio.Semaphore(_FIELDS_AT_ONCE)

    def count_reads(self, number: int) -> None:
        """Count runs, or values of a run, that are read separately; raise InvalidArgument for too many."""
        self._read += number
        if self._read > MAX_READS:
            self._refuse(f"the query asks for too much: more than {MAX_READS:,} runs or histories")

    def count_rows(self, number: int) -> None:
        """Count the rows of a list, since lists within lists multiply; raise InvalidArgument for too many."""
        self._rows += _LIST_ROWS + number
        if self._rows > MAX_ROWS:
            self._refuse("the query asks for too much: too many lists of artifacts")

    def count_value(self, value: T) -> T:
        """Count a value of the response and return it. The same may be asked for under many names.

        Raises:
            InvalidArgument: too much for one request.
        """
        self._values += 1
        if isinstance(value, str):
            self._text += len(value)
        elif isinstance(value, list):
            self._values += len(value)
            self._values += sum(len(item) for item in value if isinstance(item, list))
            self._text += sum(len(item) for item in value if isinstance(item, str))
        if self._values > MAX_VALUES:
            self._refuse(f"the query asks for too much: more than {MAX_VALUES:,} values")
        if self._text > MAX_TEXT:
            self._refuse(f"the query asks for too much: more than {MAX_TEXT:,} characters")
        return value

    def _refuse(self, reason: str) -> NoReturn:
        self._refusal = InvalidArgument(reason)
        raise self._refusal

    def check(self) -> None:
        """Raise if the query was refused meanwhile, takes too long, or nobody waits for it any more.

        Its other fields need no work then.

        Raises:
            InvalidArgument, TooSlow, ClientLeft: why.
        """
        if self._refusal is not None:
            raise InvalidArgument(str(self._refusal))
        with self.in_time():
            deadline.check()

    def in_time(self) -> AbstractContextManager[None]:
        """Return the deadline of the whole request, for a block."""
        return deadline.within(self._until_s - time.monotonic())

    @contextmanager
    def working(self, changes: bool = False) -> Iterator[None]:
        """Apply the limits of the whole request to a block, which runs in a thread.

        Args:
            changes: the block changes something: it is completed whoever waits for it and whatever it takes
                of the processor.

        Raises:
            InvalidArgument: the request has used its processor time.
            TooSlow, ClientLeft: see `check`.
        """
        self.check()
        started_s = self._cpu_clock()
        try:
            with deadline.while_connected(None) if changes else nullcontext(), self.in_time():
                yield
        finally:
            self._cpu_s += self._cpu_clock() - started_s
        if self._cpu_s > MAX_CPU_S and not changes:
            self._refuse(f"the query asks for too much: it takes more than {MAX_CPU_S:g} s")

    @property
    def refusal(self) -> InvalidArgument | None:
        """Why the query was refused while it was executed, if it was."""
        return self._refusal

    async def read_run(self, row: RunRow, work: Callable[[RunView], T], quick: bool = False) -> T:
        """Return the result of `work` with a view of a run, in a thread and with a deadline.

        Few reads of a request are made at a time. The others wait here, and not where they would keep the
        requests of other clients waiting.

        Raises:
            InvalidArgument: the query asks for too much.
        """
        self.count_reads(1)

        def timed(view: RunView) -> T:
            with self.working():
                return work(view)

        async with self._reading:
            self.check()
            library = self.services.library
            opened = await library.open(row.uid, row.id)
            return await opened.use(timed, quick=quick)

    @property
    def services(self) -> SharedServices:
        """The services of the server."""
        return shared_services_of(self.request)

    @property
    def access(self) -> AccessControl:
        """The access control of the server."""
        return access_of(self.request)

    @property
    def metadata_store(self) -> MetadataStore:
        """The metadata store of the server."""
        return self.access.metadata_store

    def now_ms(self) -> int:
        """Return the time now, ms UTC."""
        return self.access.clock()

    @property
    def has_accounts(self) -> bool:
        """Whether the server has accounts."""
        return self.access.directory.accounts_exist

    def default_entity(self) -> EntityNode:
        """Return the team or user that gets runs which name none.

        Raises:
            HTTPException: 403 if the key's owner has none.
        """
        if not self.has_accounts:
            return EntityNode(None, WITHOUT_ACCOUNTS)
        principal = self.requester.principal
        home = principal.home if isinstance(principal, (User, ServiceAccount)) else None
        if home is None:
            raise HTTPException(403, "entity is missing: name the team or user that the run belongs to")
        return self._node(self.access.directory.entity(home))

    def entity_named(self, name: str | None) -> EntityNode:
        """Return a team or a user's own space by name; None: the default.

        What the requester may do in it is not checked.

        Raises:
            HTTPException: 404 if there is none.
        """
        if not name or not self.has_accounts:
            return self.default_entity()
        entity = self.access.directory.entity_named(name.lower())
        if entity is None or entity.deleted:
            raise HTTPException(404, f"there is no entity {name[:100]!r}")
        return self._node(entity)

    def _node(self, entity: Entity) -> EntityNode:
        names = self.access.accounts.entity_names([entity.id])
        return EntityNode(entity.id, names[entity.id], entity.owner_id is None)


def node_id(kind: str, number: int) -> str:
    """Return the global id of an object, as clients keep it and send it back.

    Example:
        >>> node_id("Run", 7)
        'UnVuOjc='
    """
    return base64.b64encode(f"{kind}:{number}".encode("ascii")).decode("ascii")


def number_of(kind: str, text: str) -> int:
    """Return the number in a global id.

    Raises:
        InvalidArgument: it is not the id of an object of this kind.
    """
    try:
        prefix, _, number = base64.b64decode(text, validate=True).decode("ascii").partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        prefix = number = ""
    if prefix != kind or not number.isdigit() or len(number) > 10 or int(number) > MAX_ID:
        raise InvalidArgument(f"invalid id {text[:100]!r}: expected that of type {kind}")
    return int(number)
