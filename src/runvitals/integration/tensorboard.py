"""Rows from TensorBoard's summaries, with the names of `wandb.tensorboard` and `wandb.tensorflow`."""

from typing import Any

from runvitals.sdk.start import active, current_run
from runvitals.sdk.tensorboard_writer import follow, scalars_of


def patch(**others: Any) -> None:
    """Log what the process writes with TensorBoard's writers, as `init(sync_tensorboard=True)` does.

    Args:
        others: those of W&B's function, such as `root_logdir`, which have no effect here.
    """
    follow(current_run)


def unpatch() -> None:
    """Do nothing: once the open run is finished, nothing is logged."""


def log(tf_summary_str_or_pb: Any, history: Any = None, step: int | None = None, **others: Any) -> None:
    """Log the scalars of a summary, given as such or as its bytes.

    Raises:
        RuntimeError: no run is open.
    """
    summary = tf_summary_str_or_pb
    if isinstance(summary, (bytes, bytearray)):
        from tensorboard.compat.proto import summary_pb2

        summary = summary_pb2.Summary.FromString(bytes(summary))
    active().log(scalars_of(summary), step=step)
