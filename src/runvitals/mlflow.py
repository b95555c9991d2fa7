"""MLflow's system metrics from our collectors: the public name of `runvitals.sdk.integrations.mlflow`."""

from runvitals.sdk.integrations.mlflow import (
    disable_system_metrics_logging,
    enable_system_metrics_logging,
    set_system_metrics_node_id,
    set_system_metrics_samples_before_logging,
    set_system_metrics_sampling_interval,
    start_run,
)

__all__ = [
    "disable_system_metrics_logging",
    "enable_system_metrics_logging",
    "set_system_metrics_node_id",
    "set_system_metrics_samples_before_logging",
    "set_system_metrics_sampling_interval",
    "start_run",
]
