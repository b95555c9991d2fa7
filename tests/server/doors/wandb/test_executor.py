"""What one GraphQL request leaves to others: threads, memory, and the event loop."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest
from fastapi import Request
from graphql import build_schema

from runvitals.base import deadline
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import Requester
from runvitals.server.doors.wandb import executor
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.executor import GraphQLExecutor, GraphQLRequest, GraphQLResponse
from runvitals.server.doors.wandb.resolvers import Resolvers, connect
from tests.patience import PATIENCE_S


def executing(*functions: tuple[str, Any]) -> GraphQLExecutor:
    """An executor of a schema with fields of these names, which are found in threads."""
    schema = build_schema(f"type Query {{ {' '.join(f'{name}: Int' for name, _ in functions)} }}")
    subject = Resolvers("test")
    for name, function in functions:
        subject.field("Query", name)(function)
    connect(schema, [subject])
    return GraphQLExecutor(schema)


async def answered(
    by: GraphQLExecutor, query: str, cpu_clock: Callable[[], float] = time.thread_time
) -> GraphQLResponse:
    context = GraphQLContext(Request({"type": "http"}), Requester(Operator()), cpu_clock)
    return await by.execute(GraphQLRequest(query), context)


def test_a_request_with_many_slow_fields_leaves_threads_to_others() -> None:
    begun, released = threading.Event(), threading.Event()

    def slow(_: None, info: Any) -> int:
        begun.set()
        released.wait(PATIENCE_S)
        return 1

    def quick(_: None, info: Any) -> int:
        return 2

    by = executing(("slow", slow), ("quick", quick))

    async def ask_both() -> list[GraphQLResponse]:
        responses: list[GraphQLResponse] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answered, by, "{" + " ".join(f"a{n}: slow" for n in range(30)) + "}")
            await anyio.to_thread.run_sync(begun.wait, PATIENCE_S)
            with anyio.move_on_after(PATIENCE_S / 4):
                responses.append(await answered(by, "{ quick }"))
            released.set()
        return responses

    assert [response.body for response in anyio.run(ask_both)] == [{"data": {"quick": 2}}]


def test_queries_that_are_kept_share_a_limit() -> None:
    by = executing(("one", lambda _, info: 1))

    async def ask() -> None:
        for number in range(60):
            padding = "#" * 20_000
            assert (await answered(by, f"{{ a{number}: one }}{padding}")).status == 200

    anyio.run(ask)
    kept = sum(map(len, by._documents))
    assert 0 < kept <= executor._MAX_CACHED_CHARACTERS


def test_what_describes_the_schema_is_found_in_a_thread() -> None:
    by = executing(("one", lambda _, info: 1))

    async def ask() -> GraphQLResponse:
        return await answered(by, "{ __schema { queryType { name } } one }")

    assert anyio.run(ask).body == {"data": {"__schema": {"queryType": {"name": "Query"}}, "one": 1}}


def of_texts(resolve: Any, kind: str = "String") -> GraphQLExecutor:
    """An executor with a field `text` that a function finds in a thread."""
    schema = build_schema(f"type Query {{ text: {kind} }}")
    subject = Resolvers("test")
    subject.field("Query", "text")(resolve)
    connect(schema, [subject])
    return GraphQLExecutor(schema)


ALIASES = "{" + " ".join(f"a{number}: text" for number in range(900)) + "}"


@pytest.mark.parametrize(
    ("value", "kind", "why"),
    [
        ("x" * 100_000, "String", "more than 16,777,216 characters"),
        (["x"] * 1000, "[String]", "more than 250,000 values"),
        (["x" * 50_000] * 2, "[String]", "more than 16,777,216 characters"),
    ],
)
def test_the_same_asked_for_under_many_names_is_refused(value: Any, kind: str, why: str) -> None:
    calls = []

    def text(_: None, info: Any) -> Any:
        calls.append(1)
        return value

    response = anyio.run(answered, of_texts(text, kind), ALIASES)
    assert response.body["data"] is None
    assert why in response.body["errors"][0]["message"]
    assert len(calls) < 300  # the others were not looked up


def test_a_request_has_a_limit_of_processor_time() -> None:
    used_s: Counter[int] = Counter()  # by thread

    def busy(_: None, info: Any) -> str:
        used_s[threading.get_ident()] += 1
        return ""

    response = anyio.run(answered, of_texts(busy), ALIASES, lambda: float(used_s[threading.get_ident()]))
    assert "more than 3 s" in response.body["errors"][0]["message"]
    assert 3 < used_s.total() < 10


def test_work_ends_when_the_client_leaves() -> None:
    calls = []

    def text(_: None, info: Any) -> str:
        calls.append(1)
        return ""

    async def ask() -> None:
        with deadline.while_connected(lambda: len(calls) >= 10):
            await answered(of_texts(text), ALIASES)

    anyio.run(ask)
    assert len(calls) < 20
