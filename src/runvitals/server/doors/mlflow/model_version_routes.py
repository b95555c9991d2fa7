"""`model-versions/…`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from fastapi import Request
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
from runvitals.server.doors.mlflow.source_files import files_of_source, run_number
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.registry.storage.model_versions import ModelVersion, NewModelVersion
from runvitals.server.registry.storage.registered_models import RegisteredModel

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


@router.post("/model-versions/create", *CHANGES)
def create(request: Request, sent: TheMessage, registry: TheRegistry, logged: TheLoggedModels) -> Response:
    """Create a version of a registered model."""
    model = registry.find(sent.required("name"), Action.REGISTRY_LINK)
    source = sent.required("source", most=MAX_SOURCE)
    if ".." in unquote(unquote(source)).split("/"):
        raise invalid(
            f"Invalid model version source: '{source[:200]}'. If supplying a source as an http, https, local "
            "file path, ftp, objectstore, or mlflow-artifacts uri, an absolute path must be provided without "
            "relative path references present. Please provide an absolute path."
        )
    origin = _origin(request, source, registry, logged)
    uid = sent.text("model_id", most=200)
    made_from = logged.find(uid) if uid else None
    run_uid = origin.run_uid or (None if made_from is None else made_from.run_uid)
    run_uid = sent.text("run_id", most=256) or run_uid
    added = registry.versions_table.register(
        model.id,
        NewModelVersion(
            source=source,
            location=origin.location,
            description=sent.text("description", most=MAX_DESCRIPTION) or "",
            tags=sent_tags(sent),
            files=origin.files,
            copy_of=origin.copy_of,
            run_id=run_number(request, run_uid),
            run_uid=run_uid,
            run_link=sent.text("run_link", most=MAX_SOURCE),
            logged_model=uid or None,
        ),
        registry.now_ms,
        registry.changer(model),
    )
    if made_from is not None:
        logged.note_version(made_from, model.name, added.version)
    return to_response({"model_version": version_json(registry.find(model.name), added)})


class _Source(NamedTuple):
    """What a version is made from: `files` by path, or the files of the version `copy_of`."""

    location: str
    run_uid: str | None = None
    files: Mapping[str, tuple[str, StoredFile]] = {}
    copy_of: int | None = None


def _origin(request: Request, source: str, registry: ModelRegistry, logged: LoggedModels) -> _Source:
    """Return where the files of a source are, and the run that made it.

    Raises:
        MlflowError: the source names a model that does not exist.
    """
    if not source.startswith(_MODELS):
        return _Source(source, None, files_of_source(request, source))
    parts = source.removeprefix(_MODELS).strip("/").split("/")
    if len(parts) == 1 and parts[0].startswith("m-"):
        model = logged.find(parts[0])
        location = logged.location(model)
        return _Source(location, model.run_uid, files_of_source(request, location))
    if len(parts) == 2 and parts[1].isascii() and parts[1].isdecimal() and len(parts[1]) < 10:
        registered_model = registry.find(parts[0], Action.REGISTRY_DOWNLOAD)
        version = registry.version(registered_model, int(parts[1]))
        return _Source(version.location, version.run_uid, {}, version.version_id)
    raise MlflowError(RESOURCE_DOES_NOT_EXIST, f"there is no model {source[:200]!r}")


@router.get("/model-versions/get", *READS)
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


@router.patch("/model-versions/update", *CHANGES)
def update(sent: TheMessage, registry: TheRegistry) -> Response:
    """Change the description of a version."""
    _, version = _find(registry, sent, Action.REGISTRY_LINK)
    description = sent.text("description", most=MAX_DESCRIPTION)
    registry.versions_table.change(version, registry.now_ms, description=description)
    return _respond(registry, sent)


@router.post("/model-versions/transition-stage", *CHANGES)
def transition_stage(sent: TheMessage, registry: TheRegistry) -> Response:
    """Move a version to a stage, and archive the others of that stage if asked to."""
    stage = checked_stage(sent.required("stage"))
    archives = sent.flag("archive_existing_versions")
    if archives and stage not in _ACTIVE:
        raise invalid(
            "Model version transition cannot archive existing model versions because "
            f"'{stage}' is not an Active stage. Valid stages are Staging, Production"
        )
    _, version = _find(registry, sent, Action.REGISTRY_LINK)
    archived = "Archived" if archives else None
    registry.versions_table.change(version, registry.now_ms, archived, stage=stage)
    return _respond(registry, sent)


@router.delete("/model-versions/delete", *CHANGES)
def delete(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete a version."""
    model, version = _find(registry, sent, Action.REGISTRY_LINK)
    registry.versions_table.delete(model.id, version, registry.now_ms, registry.changer(model))
    return to_response({})


@router.get("/model-versions/get-download-uri", *READS)
def download_uri(sent: TheMessage, registry: TheRegistry) -> Response:
    """Return where the files of a version are."""
    _, version = _find(registry, sent, Action.REGISTRY_DOWNLOAD)
    return to_response({"artifact_uri": version.location})


@router.post("/model-versions/set-tag", *CHANGES)
def set_tag(sent: TheMessage, registry: TheRegistry) -> Response:
    """Set a tag of a version."""
    _, version = _find(registry, sent, Action.REGISTRY_LINK)
    key, value = sent_tag(sent)
    registry.versions_table.change_tags(version, {key: value}, registry.now_ms)
    return to_response({})


@router.delete("/model-versions/delete-tag", *CHANGES)
def delete_tag(sent: TheMessage, registry: TheRegistry) -> Response:
    """Delete a tag of a version."""
    _, version = _find(registry, sent, Action.REGISTRY_LINK)
    registry.versions_table.change_tags(version, {sent.required("key"): None}, registry.now_ms)
    return to_response({})


_Pair = tuple[RegisteredModel, ModelVersion]


@router.get("/model-versions/search", *READS)
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
        for version in registry.versions_table.of_collection(model.id)
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
