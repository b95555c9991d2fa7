"""Executes GraphQL requests within limits, and reports errors in the form that GraphQL clients expect."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping
from functools import partial
from inspect import isawaitable
from typing import Any, Final, NamedTuple, Protocol

import anyio
import anyio.to_thread
import msgspec
from graphql import (
    DocumentNode,
    ExecutionResult,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    execute,
    parse,
    validate,
)

from runvitals.base.deadline import TooSlow
from runvitals.model import json_values
from runvitals.server.error_table import FAILED, meaning_of

_MAX_CHARACTERS: Final = 100_000
_MAX_TOKENS: Final = 10_000
_MAX_DEPTH: Final = 25
"""The most levels of selections: the introspection query of GraphQL tools has 15."""
_MAX_FIELDS: Final = 5_000
"""The most fields of a query, each fragment counted wherever it is used."""
_MAX_INTROSPECTED: Final = 300
"""Fields of a query that describe the schema: that of GraphQL tools has 230."""
_MAX_COMPARED: Final = 10_000
"""Pairs of fields with the same name in the response, and of fragments. Each pair is compared to find out
whether they can be merged, with all that is within."""
_MAX_ERRORS: Final = 20
_MAX_CACHED_CHARACTERS: Final = 256 * 1024
"""The most characters of all queries that are kept: parsed, they take a hundred times as much memory."""
_CACHED_CHARACTERS: Final = 32 * 1024
"""A longer query is parsed anew whenever it is sent."""
_PARSED_AT_ONCE: Final = 4 * 1024
"""A longer query is parsed in a thread: 20,000 characters take 0.2 s."""
_TRANSIENT: Final = (408, 429, 503)
"""Statuses that the response to the request gets too, because clients repeat it only then."""

_Path = tuple[str, ...]
_SPREAD: Final = "..."
"""In paths, instead of a name: a fragment."""
_INTROSPECTION: Final = ("__schema", "__type")

log = logging.getLogger("runvitals.server")


class GraphQLRequest(msgspec.Struct):
    """The body of a request."""

    query: str
    variables: dict[str, Any] | None = None
    operationName: str | None = None


class GraphQLResponse(NamedTuple):
    """The JSON body of a response, its HTTP status, and after how many seconds to try again."""

    body: dict[str, Any]
    status: int = 200
    retry_after_s: int | None = None


class Budgeted(Protocol):
    """The part of `info.context` that the executor reads."""

    @property
    def refusal(self) -> Exception | None:
        """Why the request was refused while it was executed, because it asked for too much."""


class GraphQLExecutor:
    """Parses, checks and executes requests. For use in the event loop.

    Args:
        schema: with resolvers, which find the context in `info.context`.
    """

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        self._documents: OrderedDict[str, _CheckedDocument] = OrderedDict()
        self._cached_characters = 0
        self._introspecting = anyio.CapacityLimiter(1)
        self._parsing = anyio.CapacityLimiter(1)

    async def execute(self, request: GraphQLRequest, context: Budgeted) -> GraphQLResponse:
        """Return the response to a request; 200 with errors for an operation that is unknown or fails."""
        try:
            document, introspects = await self._check(request.query)
        except _Invalid as invalid:
            return GraphQLResponse({"data": None, "errors": [error.formatted for error in invalid.errors]})
        begin = partial(
            execute,
            self._schema,
            document,
            context_value=context,
            variable_values=request.variables,
            operation_name=request.operationName or None,
        )
        if introspects:  # descriptions of the schema are resolved without awaiting anything
            result = await anyio.to_thread.run_sync(begin, limiter=self._introspecting)
        else:
            result = begin()
        if isawaitable(result):
            result = await result
        assert isinstance(result, ExecutionResult)
        if context.refusal is not None:  # it refuses the whole request
            return GraphQLResponse(errors_body(str(context.refusal)))
        return _to_response(result)

    async def _check(self, query: str) -> _CheckedDocument:
        """Parse a query and check it against the schema.

        Raises:
            _Invalid: the query cannot be parsed, is too large, or does not match the schema.
        """
        cached = self._documents.get(query)
        if cached is not None:
            self._documents.move_to_end(query)
            return cached
        if len(query) > _MAX_CHARACTERS:
            error = f"the query is too long: at most {_MAX_CHARACTERS:,} characters are allowed"
            raise _Invalid([GraphQLError(error)])
        if len(query) <= _PARSED_AT_ONCE:
            checked = self._parse(query)
        else:
            checked = await anyio.to_thread.run_sync(self._parse, query, limiter=self._parsing)
        if query not in self._documents and len(query) <= _CACHED_CHARACTERS:
            self._documents[query] = checked
            self._cached_characters += len(query)
            while self._cached_characters > _MAX_CACHED_CHARACTERS:
                oldest, _ = self._documents.popitem(last=False)
                self._cached_characters -= len(oldest)
        return checked

    def _parse(self, query: str) -> _CheckedDocument:
        try:
            document = parse(query, no_location=True, max_tokens=_MAX_TOKENS)
            checked = _CheckedDocument(document, _introspects(document))
            errors = validate(self._schema, document, max_errors=_MAX_ERRORS)
        except GraphQLError as error:
            raise _Invalid([error]) from None
        except RecursionError:
            raise _Invalid([GraphQLError("the query is nested too deeply")]) from None
        if errors:
            raise _Invalid(errors)
        return checked


class _CheckedDocument(NamedTuple):
    """A query that can be executed. `introspects`: it asks about the schema."""

    document: DocumentNode
    introspects: bool


class _Invalid(Exception):
    """A query that cannot be executed."""

    def __init__(self, errors: list[GraphQLError]) -> None:
        super().__init__()
        self.errors = errors


def _introspects(document: DocumentNode) -> bool:
    """Return whether a document asks about the schema.

    Raises:
        GraphQLError: the selections are nested too deeply, or too many.
    """
    definitions = document.definitions
    fragments = {
        definition.name.value: definition.selection_set
        for definition in definitions
        if isinstance(definition, FragmentDefinitionNode)
    }
    extent = _Extent(fragments)
    for definition in definitions:
        if isinstance(definition, (OperationDefinitionNode, FragmentDefinitionNode)):
            extent.add(definition.selection_set)
    return extent.introspected > 0


class _Extent:
    """Counts what a document selects.

    Args:
        fragments: by name.

    Attributes:
        introspected: how many fields describe the schema.
    """

    def __init__(self, fragments: Mapping[str, SelectionSetNode]) -> None:
        self._fragments = fragments
        self._fields = self._compared = self.introspected = 0

    def add(self, selections: SelectionSetNode) -> None:
        """Count the selections of an operation, or of a fragment: it is checked even if it is not used.

        Raises:
            GraphQLError: they are nested too deeply, or too many with those before.
        """
        self._visit(selections, 1, (), Counter())

    def _visit(self, selections: SelectionSetNode, depth: int, path: _Path, counts: Counter[_Path]) -> None:
        """Count the fields of a selection.

        Args:
            path: of names in the response.
            counts: how many fields have each path; those with the same are compared.
        """
        if depth > _MAX_DEPTH:
            raise GraphQLError(f"the query is nested too deeply: at most {_MAX_DEPTH} levels are allowed")
        for selection in selections.selections:
            self._fields += 1
            if self._fields > _MAX_FIELDS:
                raise GraphQLError(f"the query selects too much: at most {_MAX_FIELDS} fields are allowed")
            if isinstance(selection, FieldNode):
                at = (*path, (selection.alias or selection.name).value)
                self._count(at, counts)
                if selection.selection_set is not None:
                    before, is_introspection = self._fields, selection.name.value in _INTROSPECTION
                    self._visit(selection.selection_set, depth + 1, at, counts)
                    if is_introspection:
                        self._count_introspected(self._fields - before)
            elif isinstance(selection, FragmentSpreadNode):
                self._count((*path, _SPREAD), counts)
                fragment = self._fragments.get(selection.name.value)
                if fragment is not None:
                    self._visit(fragment, depth + 1, path, counts)
            elif isinstance(selection, InlineFragmentNode):
                self._visit(selection.selection_set, depth, path, counts)

    def _count(self, path: _Path, counts: Counter[_Path]) -> None:
        self._compared += counts[path]
        counts[path] += 1
        if self._compared > _MAX_COMPARED:
            raise GraphQLError("the query selects the same fields, or fragments, too often")

    def _count_introspected(self, fields: int) -> None:
        self.introspected += fields
        if self.introspected > _MAX_INTROSPECTED:
            raise GraphQLError(
                f"the query asks too much about the schema: at most {_MAX_INTROSPECTED} fields are allowed"
            )


def _to_response(result: ExecutionResult) -> GraphQLResponse:
    body: dict[str, Any] = {"data": result.data}
    status, retry_after_s = 200, None
    if result.errors:
        errors = [_to_json(error) for error in result.errors[:_MAX_ERRORS]]
        body["errors"] = errors
        for error, formatted in zip(result.errors, errors, strict=False):
            code = formatted.get("extensions", {}).get("code")
            if isinstance(error.original_error, FailedRequest):
                status = code
            if code in _TRANSIENT:
                status = code
                retry_after_s = getattr(error.original_error, "retry_after_s", None) or 5
    return GraphQLResponse(body, status, retry_after_s)


def _to_json(error: GraphQLError) -> dict[str, Any]:
    """Return an error for the client: of what it did, with its reason; of the server, without."""
    cause = error.original_error
    formatted: dict[str, Any] = dict(error.formatted)
    if cause is None:
        return formatted
    message, code = _reason(cause)
    if code == FAILED:
        log.error("a GraphQL operation failed", exc_info=cause)
    return {**formatted, "message": message, "extensions": {"code": code}}


def _reason(cause: Exception) -> tuple[str, int]:
    if isinstance(cause, TooSlow):
        return "this takes too long: narrow the filter, or request fewer values", 422
    if isinstance(cause, OSError):  # the sample store, or the disk
        return str(cause), 503
    if isinstance(cause, InvalidArgument):
        return str(cause), cause.status if isinstance(cause, FailedRequest) else 422
    if isinstance(cause, GraphQLError):  # a variable that the schema does not allow
        return cause.message, 422
    meaning = meaning_of(cause)
    if meaning.status == FAILED:
        return "the server failed to answer this operation: see its log", FAILED
    return meaning.text, meaning.status


class InvalidArgument(ValueError):
    """An argument of an operation that is not valid, or not supported. The client shows the text."""


class FailedRequest(InvalidArgument):
    """An error whose code is also the HTTP status of the response, because clients look for it there."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def decode_request(body: bytes) -> GraphQLRequest:
    """Return the request in a body.

    Raises:
        InvalidArgument: it is not a GraphQL request in JSON.
    """
    try:
        request = msgspec.json.decode(body, type=GraphQLRequest)
        json_values.check(request.variables)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise InvalidArgument(f"the body is not a GraphQL request in JSON: {error}") from None
    return request


def errors_body(text: str) -> dict[str, Any]:
    """Return the body of a response that is an error."""
    return {"data": None, "errors": [{"message": text}]}
