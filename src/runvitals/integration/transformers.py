"""Lets the Trainer of transformers report to runvitals: `TrainingArguments(report_to="runvitals")`.

Example:
    import runvitals.transformers
"""

from runvitals.sdk.integrations.transformers import TransformersCallback

try:
    from transformers.integrations import INTEGRATION_TO_CALLBACK
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; install it with pip install transformers") from error

INTEGRATION_TO_CALLBACK["runvitals"] = TransformersCallback

__all__ = ["TransformersCallback"]
