"""What MLflow has besides and this server does not, with what to use instead."""

from __future__ import annotations

from typing import Final

from runvitals.server.doors.mlflow.prefixes import PREFIX

_TRACES: Final = (
    "traces are not stored here: set MLFLOW_TRACKING_URI of the traced program to an MLflow server, or send "
    "its spans by OTLP (OTEL_EXPORTER_OTLP_TRACES_ENDPOINT) to Jaeger, Tempo or Langfuse; "
    "mlflow.tracing.disable() stops this warning"
)
_EVALUATION: Final = (
    "evaluation datasets and scorers are not stored here: mlflow.log_input() keeps with a run which data it "
    "used, mlflow.log_table() and mlflow.log_artifact() the data and its scores"
)
_GATEWAY: Final = "this server is no gateway to language models: use MLflow's own, or call them directly"
_INSTEAD: Final = {
    **dict.fromkeys(("traces", "trace", "assessments", "sessions", "issues", "review-queues"), _TRACES),
    **dict.fromkeys(("datasets", "scorers", "label-schemas", "labeling-sessions"), _EVALUATION),
    **dict.fromkeys(("gateway", "gateway-proxy", "endpoints"), _GATEWAY),
    "webhooks": "webhooks are those of a team: add one on its page (Notifications), and an automation for "
    "the event registry.link, artifact.alias or artifact.version that calls it, or use "
    "POST /api/v1/teams/TEAM/automations",
    "prompt-optimization": "prompts are registered and loaded here, but not optimized",
    "workspaces": "this server has no workspaces: teams own projects",
}


def reason(method: str, rest: str) -> str:
    """Return why a path after `/api/2.0/mlflow/` has no response, and what to use.

    Example:
        >>> reason("GET", "no/such")
        'GET /api/2.0/mlflow/no/such is not supported'
    """
    text = f"{method} {PREFIX}/{rest[:200]} is not supported"
    instead = _INSTEAD.get(rest.partition("/")[0])
    return text if instead is None else f"{text}: {instead}"
