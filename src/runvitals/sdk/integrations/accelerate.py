"""For the Accelerator of Hugging Face Accelerate.

https://huggingface.co/docs/accelerate/usage_guides/tracking
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class
from runvitals.sdk.run import Run

BASES = (("accelerate.tracking", "GeneralTracker"),)


class AccelerateTracker:
    """Logs what `Accelerator.log` is given. Accelerate uses it in the first process only.

    The others belong to the run too if they call `runvitals.init()`, before `init_trackers`.

    Args:
        project_name: the project; Accelerate passes it.
        settings: further arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: Accelerate has not been imported.

    Example:
        >>> accelerator = accelerate.Accelerator(log_with=AccelerateTracker("digits"))
        >>> accelerator.init_trackers("digits", config={"lr": 0.1})
    """

    name = "runvitals"
    requires_logging_directory = False

    def __new__(cls, *args: Any, **settings: Any) -> AccelerateTracker:
        """Create the tracker with Accelerate's base class."""
        tracker: AccelerateTracker = object.__new__(derive_class(cls, "accelerate", *BASES))
        return tracker

    def __init__(self, project_name: str | None = None, **settings: Any) -> None:
        super().__init__()
        self._callback = CallbackRun(0, {"project": project_name, **settings})

    def start(self) -> None:
        """Open the run, or join it."""
        self._callback.run()

    @property
    def tracker(self) -> Run:
        """The run."""
        return self._callback.run()

    def store_init_configuration(self, values: Mapping[str, Any]) -> None:
        """Add values to the run's configuration."""
        self.tracker.config.update(values)

    def log(self, values: Mapping[str, Any], step: int | None = None, **others: Any) -> None:
        """Log a row."""
        self.tracker.log(values, step=step)

    def log_images(self, values: Mapping[str, Any], step: int | None = None, **others: Any) -> None:
        """Log lists of images by name."""
        from runvitals.sdk.media.values import Image

        images = {name: [Image(image) for image in batch] for name, batch in values.items()}
        self.log(images, step)

    def finish(self) -> None:
        """Finish the run; Accelerate calls it in `end_training`."""
        self.tracker.finish()
