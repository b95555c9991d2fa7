"""`registered-models/…`."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.access.permission import needs
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError, invalid
from runvitals.server.doors.mlflow.limits import checked_tag, sent_tags
from runvitals.server.doors.mlflow.pages import max_results, page_of
from runvitals.server.doors.mlflow.registry import (
    LATEST,
    PROMPT_TAG,
    TheRegistry,
    checked_alias,
    sent_version,
    version_json,
)
from runvitals.server.doors.mlflow.requests import SentMessage, TheMessage, mlflow_router, to_response
from runvitals.server.doors.mlflow.search_text import (
    Attributes,
    Comparison,
    OrderBy,
    Value,
    parse_filter,
    parse_order,
)
from runvitals.server.registry.storage.registered_models import RegisteredModel

MAX_DESCRIPTION: Final = 100_000
MAX_TAG: Final = 100_000
DEFAULT_PAGE: Final = 100
MAX_PAGE: Final = 1000
STAGES: Final = ("None", "Staging", "Production", "Archived")
ATTRIBUTES: Final = Attributes(
    texts={"name": ()},
    numbers={"creation_timestamp": (), "last_updated_timestamp": ("timestamp",)},
    kinds=("attribute", "tag"),
)
# The body names the model; `ModelRegistry.require` decides.
READS: Final = [needs("filtered registry:read")]
CHANGES: Final = [needs("filtered registry:link")]

router: Final = mlflow_router()


@router.post("/registered-models/create", *CHANGES)
def create(sent: TheMessage, registry: TheRegistry) -> Response:
    """Create a registered model."""
    name = sent.required("name", most=MAX_TAG)
    description = sent.text("description", most=MAX_DESCRIPTION)
    model = registry.create(name, description, sent_tags(sent))
    return to_response({"registered_model": registry.as_json(model)})


@router.get("/registered-models/get", *READS)
def get(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return a registered model by its name."""
    return to_response({"registered_model": registry.as_json(registry.find(sent.required("name")))})


@router.patch("/registered-models/update", *CHANGES)
def update(sent: TheMessage, registry: TheRegistry) -> Response:
    """Change the description of a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    description = sent.text("description", most=MAX_DESCRIPTION)
    registry.table.describe(model, description, registry.now_ms)
    return to_response({"registered_model": registry.as_json(registry.find(model.name))})


@router.post("/registered-models/rename", *CHANGES)
def rename(sent: TheMessage, registry: TheRegistry) -> Response:
    """Rename a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    renamed = registry.rename(model, sent.required("new_name", most=MAX_TAG))
    return to_response({"registered_model": registry.as_json(renamed)})


@router.delete("/registered-models/delete", *CHANGES)
def delete(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    registry.table.delete(model.id, registry.now_ms, registry.changer(model))
    return to_response({})


@router.get("/registered-models/list", *READS)
@router.get("/registered-models/search", *READS)
def search(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return a page of the registered models that match a filter."""
    comparisons = parse_filter(sent.text("filter"), ATTRIBUTES)
    order = parse_order(sent.texts("order_by"), ATTRIBUTES)
    most = max_results(sent.integer("max_results") or None, DEFAULT_PAGE, MAX_PAGE)
    comparisons, prompts = without_prompt_tag(comparisons)
    models = [
        model
        for model in registry.models()
        if (model.tags.get(PROMPT_TAG) == "true") == prompts
        and all(comparison.holds(_value(model, comparison)) for comparison in comparisons)
    ]
    for part in reversed(order):
        if part.kind != "attribute":
            raise invalid(f"Invalid order_by entity: {part.kind}")

        def key(model: RegisteredModel, part: OrderBy = part) -> Any:
            return _value(model, part)

        models.sort(key=key, reverse=not part.ascending)
    page, following = page_of(models, sent, most)
    more = {} if following is None else {"next_page_token": following}
    return to_response({"registered_models": [registry.as_json(model) for model in page], **more})


def _value(model: RegisteredModel, comparison: Comparison | OrderBy) -> Value | None:
    if comparison.kind == "tag":
        return model.tags.get(comparison.key)
    attributes: dict[str, Value] = {
        "name": model.name,
        "creation_timestamp": model.created_ms,
        "last_updated_timestamp": model.changed_ms,
    }
    return attributes[comparison.key]


def without_prompt_tag(comparisons: list[Comparison]) -> tuple[list[Comparison], bool]:
    """Return the other comparisons of a filter, and whether it asks for prompts instead of models."""
    prompt_tags = [
        comparison for comparison in comparisons if comparison.kind == "tag" and comparison.key == PROMPT_TAG
    ]
    prompts = any(
        (comparison.operator, comparison.value) in (("=", "true"), ("!=", "false"))
        for comparison in prompt_tags
    )
    return [comparison for comparison in comparisons if comparison not in prompt_tags], prompts


@router.post("/registered-models/get-latest-versions", *READS)
@router.get("/registered-models/get-latest-versions", *READS)
def latest_versions(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return the newest version in each stage, by version."""
    model = registry.find(sent.required("name"))
    stages = [checked_stage(stage) for stage in sent.texts("stages")] or STAGES
    newest = {version.stage: version for version in registry.versions_table.of_collection(model.id)}
    versions = [version_json(model, version) for stage, version in newest.items() if stage in stages]
    return to_response({"model_versions": versions})


def checked_stage(stage: str) -> str:
    """Return a stage as it is written, or raise MlflowError."""
    for stage_name in STAGES:
        if stage.lower() == stage_name.lower():
            return stage_name
    raise invalid(f"Invalid Model Version stage: {stage[:60]}. Value must be one of {', '.join(STAGES)}.")


@router.post("/registered-models/set-tag", *CHANGES)
def set_tag(sent: TheMessage, registry: TheRegistry) -> Response:
    """Set a tag of a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    key, value = sent_tag(sent)
    registry.table.change_tags(model.id, {key: value})
    return to_response({})


def sent_tag(sent: SentMessage) -> tuple[str, str]:
    """Return the tag in a message."""
    return checked_tag(sent.required("key"), sent.text("value"), most_value=MAX_TAG)


@router.delete("/registered-models/delete-tag", *CHANGES)
def delete_tag(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete a tag of a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    registry.table.change_tags(model.id, {sent.required("key"): None})
    return to_response({})


@router.post("/registered-models/alias", *CHANGES)
def set_alias(sent: TheMessage, registry: TheRegistry) -> Response:
    """Let an alias mean a version."""
    model = registry.find(sent.required("name"), Action.REGISTRY_ALIAS)
    alias = checked_alias(sent.required("alias"))
    version = registry.version(model, sent_version(sent))
    registry.table.set_alias(model.id, alias, version.version_id, registry.now_ms, registry.changer(model))
    return to_response({})


@router.delete("/registered-models/alias", *CHANGES)
def delete_alias(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete an alias."""
    model = registry.find(sent.required("name"), Action.REGISTRY_ALIAS)
    registry.table.delete_alias(model.id, sent.required("alias"), registry.now_ms, registry.changer(model))
    return to_response({})


@router.get("/registered-models/alias", *READS)
def get_alias(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return the version that an alias means. `latest`, which nobody can set, is the newest one."""
    model = registry.find(sent.required("name"))
    alias = sent.required("alias")
    number = model.aliases.get(alias)
    if number is None and alias.lower() == LATEST:
        newest = registry.versions_table.of_collection(model.id)[-1:]
        if not newest:
            raise MlflowError(RESOURCE_DOES_NOT_EXIST, f"Latest version not found for model {model.name}.")
        number = newest[0].version
    if number is None:
        raise invalid(f"Registered model alias {alias[:100]} not found.")
    return to_response({"model_version": version_json(model, registry.version(model, number))})
