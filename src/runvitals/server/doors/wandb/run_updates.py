"""Changes of a run by `wandb.Api()`: `run.update()` and `run.summary.update()`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool

from runvitals.server.access.actions import Action
from runvitals.server.doors.wandb.context import GraphQLContext, number_of
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.run_ids import SECTION
from runvitals.server.doors.wandb.run_nodes import (
    RunNode,
    project_of,
    run_nodes,
    run_to_change,
    selected_fields,
)
from runvitals.server.doors.wandb.run_settings import (
    config_values,
    parsed_json,
    removed_config,
    run_values,
)
from runvitals.server.doors.wandb.summaries import FORM, SUMMARY_SECTIONS, edited_summary
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.runs.storage.search_columns import DELETED

if TYPE_CHECKING:
    from runvitals.server.doors.wandb.context import Info


async def update_run(info: Info, sent: Mapping[str, Any]) -> dict[str, Any]:
    """Change the run with the id that a client has read. What is null, missing or the same stays as it is."""
    context = info.context
    number = number_of("Run", sent["id"])
    row = await run_in_threadpool(run_to_change, context, number, Action.RUN_UPDATE)
    sections, removed = await run_in_threadpool(_changes, context, row, sent)
    if sections or removed:
        library, changes = context.services.library, context.services.changes
        changed = sorted(
            {*sections.get("run", {}), *(sections.keys() - {"run"}), *removed} - {FORM, DELETED, SECTION}
        )
        record = partial(
            changes.record_of_run,
            context.requester,
            number,
            "run.update",
            {"fields": changed},
        )
        try:
            await library.set_sections(row.uid, sections, number, record, removed)
        except ValueError as error:
            raise InvalidArgument(str(error)) from None
    return {"bucket": await run_in_threadpool(_node, info, number), "inserted": False}


def _changes(
    context: GraphQLContext, row: RunRow, sent: Mapping[str, Any]
) -> tuple[dict[str, dict[str, Any]], dict[str, list[str]]]:
    """Return the values that differ from the present ones, and the keys that are removed, by section."""
    sections = ("run", "config", *SUMMARY_SECTIONS)
    present = context.metadata_store.sections.read([row.id], sections)[row.id]
    requested = {
        "run": run_values(dict(sent)),
        "config": config_values(parsed_json("config", sent.get("config"))),
    }
    present_values = {
        "run": {**present.shared.get("run", {}), "name": row.name, "tags": list(row.tags)},
        "config": present.shared.get("config", {}),
    }
    changes = {
        section: {
            name: value
            for name, value in values.items()
            if name not in present_values[section] or present_values[section][name] != value
        }
        for section, values in requested.items()
    }
    removed = removed_config(sent.get("config"), requested["config"], present_values["config"])
    if sent.get("summary_metrics"):
        edited = edited_summary(present, parsed_json("summaryMetrics", sent.get("summary_metrics")))
        changes |= edited.sections
        removed |= edited.removed
    return {section: values for section, values in changes.items() if values}, removed


def _node(info: Info, number: int) -> RunNode:
    """Return the run after the change."""
    context = info.context
    row = run_to_change(context, number, Action.RUN_READ)
    return run_nodes(context, project_of(context, row), [row], selected_fields(info))[0]
