"""For the models of Stable-Baselines3, under the names of `wandb.integration.sb3`."""

from __future__ import annotations

import os
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class

_BASES = (("stable_baselines3.common.callbacks", "BaseCallback"),)


class StableBaselinesCallback:
    """Adds the parameters of a model to the configuration, and saves the model.

    Its metrics are logged with `init(sync_tensorboard=True)` and the model's `tensorboard_log`.

    Args:
        verbose: as Stable-Baselines3 has it.
        model_save_path: a folder for the model.
        model_save_freq: save it every so many steps, not only at the end.
        gradient_save_freq: log histograms of the gradients every so many passes.
        log: see `Run.watch`.

    Raises:
        RuntimeError: Stable-Baselines3 has not been imported.
    """

    def __new__(cls, *args: Any, **settings: Any) -> StableBaselinesCallback:
        """Create the callback with the base class of Stable-Baselines3."""
        callback: StableBaselinesCallback = object.__new__(derive_class(cls, "stable_baselines3", *_BASES))
        return callback

    def __init__(
        self,
        verbose: int = 0,
        model_save_path: str | None = None,
        model_save_freq: int = 0,
        gradient_save_freq: int = 0,
        log: str | None = "all",
    ) -> None:
        super().__init__(verbose)  # type: ignore[call-arg]
        self._callback = CallbackRun(0, {})
        self._folder, self._every, self._watch_every, self._log = (
            model_save_path, model_save_freq, gradient_save_freq, log,
        )  # fmt: skip

    def _init_callback(self) -> None:
        model = self.model  # type: ignore[attr-defined]
        run = self._callback.run({"algo": type(model).__name__, **vars(model)})
        if self._watch_every:
            run.watch(model.policy, log=self._log, log_freq=self._watch_every)

    def _on_step(self) -> bool:
        if self._every and self.n_calls % self._every == 0:  # type: ignore[attr-defined]
            self.save_model()
        return True

    def _on_training_end(self) -> None:
        self.save_model()

    def save_model(self) -> None:
        """Save the model into the folder, and record a copy of the file."""
        if self._folder is not None:
            path = os.path.join(self._folder, "model.zip")
            os.makedirs(self._folder, exist_ok=True)
            self.model.save(path)  # type: ignore[attr-defined]
            self._callback.run().save(path, base=self._folder)
