"""The GraphQL schema: the files in `schema/` together, with the functions of each subject."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from graphql import GraphQLError, GraphQLSchema, assert_scalar_type, build_schema

from runvitals.server.doors.wandb.artifact_changes import ARTIFACT_CHANGES
from runvitals.server.doors.wandb.artifact_reads import ARTIFACT_READS
from runvitals.server.doors.wandb.artifact_writes import ARTIFACT_WRITES
from runvitals.server.doors.wandb.automations.triggers import AUTOMATIONS
from runvitals.server.doors.wandb.branches import BRANCHES
from runvitals.server.doors.wandb.file_reads import FILE_READS
from runvitals.server.doors.wandb.history_reads import HISTORY_READS
from runvitals.server.doors.wandb.launch import LAUNCH
from runvitals.server.doors.wandb.project_reads import PROJECT_READS
from runvitals.server.doors.wandb.registries import REGISTRIES
from runvitals.server.doors.wandb.registry_changes import REGISTRY_CHANGES
from runvitals.server.doors.wandb.registry_reads import REGISTRY_READS
from runvitals.server.doors.wandb.reports.report_links import REPORT_LINKS
from runvitals.server.doors.wandb.reports.report_views import REPORT_VIEWS
from runvitals.server.doors.wandb.resolvers import Resolvers, connect
from runvitals.server.doors.wandb.resume import RESUME
from runvitals.server.doors.wandb.run_reads import RUN_READS
from runvitals.server.doors.wandb.run_writes import RUN_WRITES
from runvitals.server.doors.wandb.sweep_changes import SWEEP_CHANGES
from runvitals.server.doors.wandb.sweep_nodes import SWEEPS
from runvitals.server.doors.wandb.uploads import UPLOADS
from runvitals.server.doors.wandb.viewer import VIEWER

SUBJECTS: Final[tuple[Resolvers, ...]] = (
    VIEWER,
    RUN_WRITES,
    RUN_READS,
    HISTORY_READS,
    FILE_READS,
    PROJECT_READS,
    SWEEPS,
    SWEEP_CHANGES,
    ARTIFACT_READS,
    ARTIFACT_WRITES,
    ARTIFACT_CHANGES,
    REGISTRIES,
    REGISTRY_READS,
    REGISTRY_CHANGES,
    REPORT_VIEWS,
    REPORT_LINKS,
    UPLOADS,
    RESUME,
    BRANCHES,
    AUTOMATIONS,
    LAUNCH,
)
"""To add operations: a file `schema/<subject>.graphql` that extends `Query`, `Mutation` or another type, a
module with a `Resolvers("<subject>")`, and that object here."""
_COMMON: Final = "common"


@lru_cache(maxsize=1)
def wandb_schema() -> GraphQLSchema:
    """Return the schema. Built once in a process: that takes tens of milliseconds."""
    schema = build_schema("\n".join(map(_declarations, (_COMMON, *(part.subject for part in SUBJECTS)))))
    connect(schema, SUBJECTS)
    assert_scalar_type(schema.type_map["JSONString"]).coerce_input_value = _text
    return schema


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise GraphQLError(f"expected JSON in a text, not {type(value).__name__}")
    return value


def _declarations(subject: str) -> str:
    return (files(__package__) / "schema" / f"{subject}.graphql").read_text("utf-8")
