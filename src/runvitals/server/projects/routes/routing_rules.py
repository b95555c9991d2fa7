"""`/projects/{project}/routing-rules`: which run OpenTelemetry's and Prometheus' values belong to."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends
from pydantic import Field

from runvitals.model.errors import UnknownProject
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.doors.routing import DEFAULT_RULES, FIELDS, InvalidRules, checked_rules
from runvitals.server.http.bodies import RequestBody
from runvitals.server.http.errors import InvalidFields
from runvitals.server.http.router import Router
from runvitals.server.runs.routes.parameters import ProjectNumber
from runvitals.server.runs.routes.project_parameters import PATH, ProjectName
from runvitals.server.service_parameters import TheAccess, TheRequester

_PATHS: Final = ("/projects/{project:path}/routing-rules", f"{PATH}/routing-rules")

router = Router()


class RulesChange(RequestBody):
    """The new rules of a project; fields that are left out get the default rules."""

    rules: dict[str, list[str]] = Field(
        description="Lists of rules such as `{k8s.job.name}`, by field; a field that is not named has the "
        "default rules."
    )


def the_number(access: TheAccess, project: ProjectName, number: ProjectNumber) -> int:
    """Return the number of the project of the path, or raise UnknownProject.

    The check of the permission has looked it up, except on a server without accounts.
    """
    if number is not None:
        return number
    for _, project_id in access.metadata_store.projects.named(project):
        return project_id
    raise UnknownProject(f"there is no project {project!r}")


TheNumber = Annotated[int, Depends(the_number)]


def read_rules(access: TheAccess, number: TheNumber) -> dict[str, Any]:
    """The rules that the project sets, and the default ones, by field."""
    return _to_response(access, number)


def change_rules(
    access: TheAccess, requester: TheRequester, number: TheNumber, change: RulesChange
) -> dict[str, Any]:
    """Replace the rules of the project. They count for what arrives from a few seconds later on."""
    try:
        checked_rules(change.rules)
    except InvalidRules as error:
        raise InvalidFields({f"rules.{field}": text for field, text in error.fields.items()}) from None
    access.metadata_store.routing_rules.set(number, change.rules, requester.actor, access.clock())
    return _to_response(access, number)


def _to_response(access: AccessControl, number: int) -> dict[str, Any]:
    rules = access.metadata_store.routing_rules.get(number)
    return {
        "rules": rules.rules,
        "defaults": {field: list(getattr(DEFAULT_RULES, field)) for field in FIELDS},
        "changed_ms": rules.changed_ms,
    }


for _path in _PATHS:
    router.add_api_route(_path, read_rules, dependencies=[needs("project:read")])
    router.add_api_route(_path, change_rules, methods=["PUT"], dependencies=[needs("project:update")])
