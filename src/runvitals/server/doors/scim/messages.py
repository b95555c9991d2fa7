"""The JSON of SCIM: errors, lists, filters and patches."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from fastapi.responses import JSONResponse

from runvitals.model.names import plain_text

T = TypeVar("T")
PREFIX: Final = "/scim/v2"
MEDIA_TYPE: Final = "application/scim+json"
USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
_MESSAGES: Final = "urn:ietf:params:scim:api:messages:2.0:"
_ALWAYS: Final = ("schemas", "id", "meta")
_MAX_COUNT: Final = 200
_MAX_DIGITS: Final = 18
_MAX_OPERATIONS: Final = 1000
_EQUALS: Final = re.compile(r'\s*(\w+)\s+eq\s+"((?:[^"\\]|\\.)*)"\s*', re.IGNORECASE)
_MEMBER: Final = re.compile(r'members\[value eq "([^"]+)"\]', re.IGNORECASE)


class ScimError(Exception):
    """A request that is not carried out.

    Args:
        kind: `scimType`: uniqueness, invalidFilter, invalidValue, invalidPath, mutability; empty for none.
    """

    def __init__(self, status: int, detail: str, kind: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind


def scim_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> JSONResponse:
    """Return a response with SCIM's media type."""
    return JSONResponse(body, status, {"cache-control": "no-store", **(headers or {})}, MEDIA_TYPE)


def error_response(status: int, detail: str, kind: str = "") -> JSONResponse:
    """Return an error as RFC 7644, section 3.12, defines it."""
    body = {"schemas": [f"{_MESSAGES}Error"], "status": str(status), "detail": detail}
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return scim_response({**body, **({"scimType": kind} if kind else {})}, status, headers)


def list_response(
    rows: Sequence[T], start: int, count: int, to_json: Callable[[Sequence[T]], list[Any]]
) -> Any:
    """Return a page of a list: `start` counts from 1.

    Args:
        to_json: the JSON of the rows of a page.
    """
    start, count = max(1, start), min(max(0, count), _MAX_COUNT)
    page = to_json(rows[start - 1 : start - 1 + count])
    return {
        "schemas": [f"{_MESSAGES}ListResponse"],
        "totalResults": len(rows),
        "startIndex": start,
        "itemsPerPage": len(page),
        "Resources": page,
    }


def with_attributes(resource: dict[str, Any], only: str | None, without: str | None) -> dict[str, Any]:
    """Return the attributes of a resource that a request asks for.

    Args:
        only, without: `attributes` and `excludedAttributes`: names, with commas between them.

    Example:
        >>> with_attributes({"schemas": [], "id": "1", "active": True, "name": {}}, "name.formatted", None)
        {'schemas': [], 'id': '1', 'name': {}}
    """
    kept, dropped = _names(only), _names(without)
    return {
        name: value
        for name, value in resource.items()
        if name in _ALWAYS or ((not kept or name.lower() in kept) and name.lower() not in dropped)
    }


def _names(listed: str | None) -> set[str]:
    """The attributes in a list, without the schemas before them and the parts behind."""
    return {
        name.strip().lower().rpartition(":")[2].partition(".")[0] for name in (listed or "").split(",")
    } - {""}


def equality(expression: str, attributes: Sequence[str]) -> tuple[str, str]:
    """Return the attribute and the value of a filter `attribute eq "value"`.

    Raises:
        ScimError: another filter.

    Example:
        >>> equality('userName eq "ada@example.org"', ["userName"])
        ('userName', 'ada@example.org')
    """
    match = _EQUALS.fullmatch(expression)
    names = {name.casefold(): name for name in attributes}
    if match is None or match[1].casefold() not in names:
        expected = " or ".join(f'{name} eq "…"' for name in attributes)
        raise ScimError(400, f"unsupported filter; expected {expected}", "invalidFilter")
    return names[match[1].casefold()], plain_text(re.sub(r"\\(.)", r"\1", match[2]))


def operations(body: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Return the operations of a PATCH: `add`, `replace` or `remove`, a path, and a value.

    An operation without a path has an object of attributes: each becomes an operation of its own.

    Raises:
        ScimError: not a valid PATCH.
    """
    changes: list[tuple[str, str, Any]] = []
    listed = body.get("Operations")
    if not isinstance(listed, list) or len(listed) > _MAX_OPERATIONS:
        raise ScimError(400, f"expected Operations, at most {_MAX_OPERATIONS}", "invalidSyntax")
    for operation in listed:
        if not isinstance(operation, dict):
            raise ScimError(400, "expected objects in Operations", "invalidSyntax")
        kind, path = str(operation.get("op", "")).lower(), operation.get("path")
        value = operation.get("value")
        if kind not in ("add", "replace", "remove"):
            raise ScimError(
                400, f"invalid op {kind[:20]!r}; expected add, replace or remove", "invalidSyntax"
            )
        if path is not None:
            changes.append((kind, str(path), value))
        elif isinstance(value, dict):
            changes += [(kind, name, part) for name, part in value.items()]
        else:
            raise ScimError(400, "an operation without a path needs an object as value", "noTarget")
    return changes


def member_of_path(path: str) -> str | None:
    """Return the user id in a path such as `members[value eq "23"]`."""
    match = _MEMBER.fullmatch(path.strip())
    return None if match is None else match[1]


def user_number(user_id: str) -> int:
    """Return the id of a user as the database has it, or raise ValueError."""
    if len(user_id) > _MAX_DIGITS:
        raise ValueError("the id is too long")
    return int(user_id)


def as_boolean(value: object) -> bool:
    """Return a boolean; Entra sends it as the text `True` or `False`.

    Raises:
        ScimError: neither.
    """
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise ScimError(400, "invalid active; expected true or false", "invalidValue")
