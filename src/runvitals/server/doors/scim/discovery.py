"""What SCIM clients ask before they provision: RFC 7644, section 4, and RFC 7643, section 7."""

from __future__ import annotations

from typing import Any, Final

from runvitals.server.doors.scim.messages import GROUP, PREFIX, USER

_CORE: Final = "urn:ietf:params:scim:schemas:core:2.0:"
_NO: Final = {"supported": False}
_CONFIGURATION: Final[dict[str, Any]] = {
    "schemas": [f"{_CORE}ServiceProviderConfig"],
    "patch": {"supported": True},
    "bulk": {**_NO, "maxOperations": 0, "maxPayloadSize": 0},
    "filter": {"supported": True, "maxResults": 200},
    "changePassword": _NO,
    "sort": _NO,
    "etag": _NO,
    "authenticationSchemes": [
        {"type": "oauthbearertoken", "name": "Bearer", "description": "The organisation's secret"}
    ],
}


def _attribute(
    name: str, kind: str = "string", description: str = "", *parts: dict[str, Any], **changes: Any
) -> dict[str, Any]:
    common: dict[str, Any] = {"multiValued": False, "required": False, "mutability": "readWrite"}
    common |= {"returned": "default", "uniqueness": "none"}
    if kind == "string":
        common["caseExact"] = False
    if parts:
        common["subAttributes"] = list(parts)
    return {"name": name, "type": kind, "description": description, **common, **changes}


_SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    {
        "id": USER,
        "name": "User",
        "description": "A user of this server.",
        "attributes": [
            _attribute("userName", description="What the provider calls the user.", required=True)
            | {"uniqueness": "server"},
            _attribute("displayName", description="The name that is shown."),
            _attribute("name", "complex", "The same name.", _attribute("formatted")),
            _attribute("active", "boolean", "False: the user is suspended."),
            _attribute(
                "emails",
                "complex",
                "Verified addresses, which a new user gets.",
                _attribute("value"),
                _attribute("primary", "boolean"),
                multiValued=True,
                mutability="immutable",
            ),
        ],
    },
    {
        "id": GROUP,
        "name": "Group",
        "description": "A team of this server.",
        "attributes": [
            _attribute("displayName", description="The name that is shown.", required=True),
            _attribute(
                "members",
                "complex",
                "Users in the team.",
                _attribute("value", description="The id of a user.", mutability="immutable"),
                _attribute("display", description="The name of the user.", mutability="readOnly"),
                multiValued=True,
            ),
        ],
    },
)


def schemas(server_url: str) -> list[dict[str, Any]]:
    """Return the attributes of users and groups that this server keeps."""
    return [
        {
            "schemas": [f"{_CORE}Schema"],
            **schema,
            "meta": {"resourceType": "Schema", "location": f"{server_url}{PREFIX}/Schemas/{schema['id']}"},
        }
        for schema in _SCHEMAS
    ]


def resource_types(server_url: str) -> list[dict[str, Any]]:
    """Return that there are users and groups."""
    return [
        {
            "schemas": [f"{_CORE}ResourceType"],
            "id": schema["name"],
            "name": schema["name"],
            "description": schema["description"],
            "endpoint": f"/{schema['name']}s",
            "schema": schema["id"],
            "meta": {
                "resourceType": "ResourceType",
                "location": f"{server_url}{PREFIX}/ResourceTypes/{schema['name']}",
            },
        }
        for schema in _SCHEMAS
    ]


def configuration(server_url: str) -> dict[str, Any]:
    """Return what this server supports of SCIM."""
    location = f"{server_url}{PREFIX}/ServiceProviderConfig"
    return {**_CONFIGURATION, "meta": {"resourceType": "ServiceProviderConfig", "location": location}}
