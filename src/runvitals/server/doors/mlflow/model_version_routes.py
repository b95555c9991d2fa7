"""`model-versions/…`."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from starlette.responses import Response

from runvitals.server.access.actions import Action
from runvitals.server.doors.mlflow.errors import RESOURCE_DOES_NOT_EXIST, MlflowError, invalid
from runvitals.server.doors.mlflow.limits import sent_tags
from runvitals.server.doors.mlflow.logged_models import LoggedModels, TheLoggedModels
from runvitals.server.doors.mlflow.pages import max_results, page_of
from runvitals.server.doors.mlflow.registered_model_routes import (
    CHANGES,
    MAX_DESCRIPTION,
    READS,
    checked_stage,
    sent_tag,
    without_prompt_tag,
)
from runvitals.server.doors.mlflow.registry import (
    PROMPT_TAG,
    ModelRegistry,
    TheRegistry,
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
from runvitals.server.registry.storage.registered_models import ModelVersion, RegisteredModel

DEFAULT_PAGE: Final = 10_000
MAX_PAGE: Final = 200_000
MAX_SOURCE: Final = 4000
_MODELS: Final = "models:/"
_ACTIVE: Final = ("Staging", "Production")
_ATTRIBUTES: Final = Attributes(
    texts={"name": (), "run_id": (), "source_path": ("source",)},
    numbers={"version_number": ("version",), "creation_timestamp": (), "last_updated_timestamp": ()},
    kinds=("attribute", "tag"),
)

router: Final = mlflow_router()


@router.post("/model-versions/create", dependencies=CHANGES)
def create(sent: TheMessage, registry: TheRegistry, logged: TheLoggedModels) -> Response:
    """Create a version of a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    source = sent.required("source", most=MAX_SOURCE)
    if ".." in unquote(unquote(source)).split("/"):
        raise invalid(
            f"Invalid model version source: '{source[:200]}'. If supplying a source as an http, https, local "
            "file path, ftp, objectstore, or mlflow-artifacts uri, an absolute path must be provided without "
            "relative path references present. Please provide an absolute path."
        )
    location, run_uid = _place(source, registry, logged)
    uid = sent.text("model_id", most=200)
    made_from = logged.find(uid) if uid else None
    if made_from is not None and run_uid is None:
        run_uid = made_from.run_uid
    added = registry.table.add_version(
        model.id,
        ModelVersion(
            version=0,
            description=sent.text("description", most=MAX_DESCRIPTION) or "",
            stage="None",
            source=source,
            location=location,
            run_uid=sent.text("run_id", most=256) or run_uid,
            run_link=sent.text("run_link", most=MAX_SOURCE),
            logged_model=uid or None,
            tags=sent_tags(sent),
            created_ms=registry.now_ms,
            changed_ms=registry.now_ms,
        ),
    )
    if made_from is not None:
        logged.note_version(made_from, model.name, added.version)
    return to_response({"model_version": version_json(registry.find(model.name), added)})


def _place(source: str, registry: ModelRegistry, logged: LoggedModels) -> tuple[str, str | None]:
    """Return where the files of a source are, and the run that made it.

    Raises:
        MlflowError: the source names a model that does not exist.
    """
    if not source.startswith(_MODELS):
        return source, None
    parts = source.removeprefix(_MODELS).strip("/").split("/")
    if len(parts) == 1 and parts[0].startswith("m-"):
        model = logged.find(parts[0])
        return logged.location(model), model.run_uid
    if len(parts) == 2 and parts[1].isascii() and parts[1].isdecimal() and len(parts[1]) < 10:
        named = registry.find(parts[0])
        version = registry.version(named, int(parts[1]))
        return version.location, version.run_uid
    raise MlflowError(RESOURCE_DOES_NOT_EXIST, f"there is no model {source[:200]!r}")


@router.get("/model-versions/get", dependencies=READS)
def get(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return a version by its number."""
    return _respond(registry, sent)


def _find(
    registry: ModelRegistry, sent: SentMessage, action: Action = Action.REGISTRY_READ
) -> tuple[RegisteredModel, ModelVersion]:
    model = registry.find(sent.required("name"), action)
    return model, registry.version(model, sent_version(sent))


def _respond(registry: ModelRegistry, sent: SentMessage) -> Response:
    model, version = _find(registry, sent)
    return to_response({"model_version": version_json(model, version)})


@router.patch("/model-versions/update", dependencies=CHANGES)
def update(sent: TheMessage, registry: TheRegistry) -> Response:
    """Change the description of a version."""
    model, version = _find(registry, sent, Action.REGISTRY_LINK)
    description = sent.text("description", most=MAX_DESCRIPTION)
    registry.table.change_version(model.id, version.version, registry.now_ms, description=description)
    return _respond(registry, sent)


@router.post("/model-versions/transition-stage", dependencies=CHANGES)
def transition_stage(sent: TheMessage, registry: TheRegistry) -> Response:
    """Move a version to a stage, and archive the others of that stage if asked to."""
    stage = checked_stage(sent.required("stage"))
    archives = sent.flag("archive_existing_versions")
    if archives and stage not in _ACTIVE:
        raise invalid(
            "Model version transition cannot archive existing model versions because "
            f"'{stage}' is not an Active stage. Valid stages are Staging, Production"
        )
    model, version = _find(registry, sent, Action.REGISTRY_LINK)
    archived = "Archived" if archives else None
    registry.table.change_version(model.id, version.version, registry.now_ms, archived, stage=stage)
    return _respond(registry, sent)


@router.delete("/model-versions/delete", dependencies=CHANGES)
def delete(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete a version."""
    model, version = _find(registry, sent, Action.REGISTRY_LINK)
    registry.table.delete_version(model.id, version.version, registry.now_ms)
    return to_response({})


@router.get("/model-versions/get-download-uri", dependencies=READS)
def download_uri(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return where the files of a version are."""
    _, version = _find(registry, sent, Action.REGISTRY_DOWNLOAD)
    return to_response({"artifact_uri": version.location})


@router.post("/model-versions/set-tag", dependencies=CHANGES)
def set_tag(sent: TheMessage, registry: TheRegistry) -> Response:
    """Set a tag of a version."""
    model, version = _find(registry, sent, Action.REGISTRY_LINK)
    key, value = sent_tag(sent)
    registry.table.change_version_tags(model.id, version.version, {key: value})
    return to_response({})


@router.delete("/model-versions/delete-tag", dependencies=CHANGES)
def delete_tag(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete a tag of a version."""
    model, version = _find(registry, sent, Action.REGISTRY_LINK)
    registry.table.change_version_tags(model.id, version.version, {sent.required("key"): None})
    return to_response({})


_Pair = tuple[RegisteredModel, ModelVersion]


@router.get("/model-versions/search", dependencies=READS)
def search(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return a page of the versions that match a filter."""
    comparisons, prompts = without_prompt_tag(parse_filter(sent.text("filter"), _ATTRIBUTES))
    order = parse_order(sent.texts("order_by"), _ATTRIBUTES)
    most = max_results(sent.integer("max_results"), DEFAULT_PAGE, MAX_PAGE)
    names = [part for part in comparisons if part.kind == "attribute" and part.key == "name"]
    pairs: list[_Pair] = [
        (model, version)
        for model in registry.models()
        if all(comparison.holds(model.name) for comparison in names)
        for version in registry.table.versions(model.id)
        if (version.tags.get(PROMPT_TAG) == "true") == prompts
        and all(comparison.holds(_value((model, version), comparison)) for comparison in comparisons)
    ]
    _sort(pairs, order)
    page, following = page_of(pairs, sent, most)
    more = {} if following is None else {"next_page_token": following}
    return to_response({"model_versions": [version_json(*pair) for pair in page], **more})


def _sort(pairs: list[_Pair], order: list[OrderBy]) -> None:
    """Sort versions: those that changed last first, unless an order says otherwise."""
    changed = 0 if order else -1
    pairs.sort(key=lambda pair: (changed * pair[1].changed_ms, pair[0].name, -pair[1].version))
    for part in reversed(order):
        if part.kind != "attribute":
            raise invalid(f"Invalid order_by entity: {part.kind}")

        def key(pair: _Pair, part: OrderBy = part) -> Any:
            return _value(pair, part) or ""

        pairs.sort(key=key, reverse=not part.ascending)


def _value(pair: _Pair, comparison: Comparison | OrderBy) -> Value | None:
    model, version = pair
    if comparison.kind == "tag":
        return version.tags.get(comparison.key)
    attributes: dict[str, Value | None] = {
        "name": model.name,
        "run_id": version.run_uid,
        "source_path": version.source,
        "version_number": version.version,
        "creation_timestamp": version.created_ms,
        "last_updated_timestamp": version.changed_ms,
    }
    return attributes[comparison.key]
