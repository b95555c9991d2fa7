"""The Python API for training scripts."""

from runvitals.monitoring.settings.settings import SettingError, Settings
from runvitals.sdk.run import Run
from runvitals.sdk.start import active, init

__all__ = ["Run", "SettingError", "Settings", "active", "init"]
