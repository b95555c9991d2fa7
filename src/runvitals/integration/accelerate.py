"""Lets Accelerate log with runvitals: `Accelerator(log_with="runvitals")`.

Example:
    import runvitals.accelerate
"""

from runvitals.sdk.integrations.accelerate import BASES, AccelerateTracker
from runvitals.sdk.integrations.callback_run import derive_class

try:
    from accelerate import tracking
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"{error}; install it with pip install accelerate") from error

if hasattr(tracking, "register_tracker_class"):  # else the tracker itself is given as `log_with`
    tracking.register_tracker_class(derive_class(AccelerateTracker, "accelerate", *BASES))

__all__ = ["AccelerateTracker"]
