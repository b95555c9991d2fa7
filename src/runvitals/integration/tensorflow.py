"""Rows from TensorFlow's summaries, with the name of `wandb.tensorflow`."""

from runvitals.integration.tensorboard import log

__all__ = ["log"]
