"""Connects functions to the fields of the schema.

Each subject has a module with a `Resolvers` and a file of the schema; `schema.SUBJECTS` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial, wraps
from inspect import iscoroutinefunction
from typing import Any, Final, TypeVar

import anyio
import anyio.to_thread
from graphql import GraphQLInputObjectType, GraphQLObjectType, GraphQLSchema

_MAX_THREADS: Final = 8
"""Threads of all requests: those that compute in Python take turns, and so does the event loop."""
_CAPITAL = re.compile("(?<=[a-z0-9])([A-Z])")
Resolver = TypeVar("Resolver", bound=Callable[..., Any])


class Resolvers:
    """The functions of a subject.

    A function gets the object whose field is read (None for `Query` and `Mutation`), `info`, and the
    arguments by name in snake case, also in input objects: `entityName` as `entity_name`. `info.context` is a
    `GraphQLContext`. A plain function runs in a thread and may read the database; an `async def` runs in the
    event loop and may not. Fields without a function are read from the attribute of their name in snake case,
    or from the key of their name in a mapping.

    Args:
        subject: the name of the file in `schema/` that declares the fields.

    Example:
        >>> VIEWER = Resolvers("viewer")
        >>> @VIEWER.field("Query", "viewer")
        ... def viewer(_: None, info: Info) -> UserNode: ...
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.functions: dict[tuple[str, str], Callable[..., Any]] = {}

    def field(self, type_name: str, field_name: str) -> Callable[[Resolver], Resolver]:
        """Resolve a field of a type by the decorated function."""

        def decorate(function: Resolver) -> Resolver:
            if (type_name, field_name) in self.functions:
                raise ValueError(f"{type_name}.{field_name} has two functions")
            self.functions[type_name, field_name] = function
            return function

        return decorate


def connect(schema: GraphQLSchema, subjects: Iterable[Resolvers]) -> None:
    """Give the fields of a schema their functions.

    Raises:
        ValueError: a field that the schema does not declare, or one with two functions.
    """
    limiter = anyio.CapacityLimiter(_MAX_THREADS)
    for subject in subjects:
        for (type_name, field_name), function in subject.functions.items():
            declared = schema.type_map.get(type_name)
            if not isinstance(declared, GraphQLObjectType) or field_name not in declared.fields:
                raise ValueError(f"schema/{subject.subject}.graphql declares no {type_name}.{field_name}")
            field = declared.fields[field_name]
            if field.resolve is not None:
                raise ValueError(f"{type_name}.{field_name} has two functions")
            field.resolve = (
                _counting(function) if iscoroutinefunction(function) else _in_thread(function, limiter)
            )
    for declared in schema.type_map.values():
        if isinstance(declared, GraphQLObjectType) and not declared.name.startswith("__"):
            for name, field in declared.fields.items():
                field.resolve = field.resolve or partial(_attribute, snake_case(name))
                for argument_name, argument in field.args.items():
                    argument.out_name = snake_case(argument_name)
        elif isinstance(declared, GraphQLInputObjectType):
            for name, definition in declared.fields.items():
                definition.out_name = snake_case(name)


def snake_case(name: str) -> str:
    """Return a name of the schema as names in Python are written.

    Example:
        >>> snake_case("historyLineCount")
        'history_line_count'
    """
    return _CAPITAL.sub(r"_\1", name).lower()


def _counting(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    async def resolve(source: Any, info: Any, **kwargs: Any) -> Any:
        info.context.check()
        return info.context.count_value(await function(source, info, **kwargs))

    return resolve


def _in_thread(function: Callable[..., Any], limiter: anyio.CapacityLimiter) -> Callable[..., Any]:
    @wraps(function)
    async def resolve(source: Any, info: Any, **kwargs: Any) -> Any:
        async with info.context.resolving:
            value = await anyio.to_thread.run_sync(partial(timed, source, info, **kwargs), limiter=limiter)
        return info.context.count_value(value)

    def timed(source: Any, info: Any, **kwargs: Any) -> Any:
        with info.context.working(changes=info.parent_type.name == "Mutation"):
            return function(source, info, **kwargs)

    return resolve


def _attribute(name: str, source: Any, info: Any, **_: Any) -> Any:
    value = source.get(info.field_name) if isinstance(source, dict) else getattr(source, name, None)
    return info.context.count_value(value)
