"""For the Trainer of Hugging Face Transformers and libraries built on it (TRL, …).

https://huggingface.co/docs/transformers/main_classes/callback
"""

from __future__ import annotations

from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun, derive_class

_BASES = (("transformers", "TrainerCallback"), ("transformers.trainer_callback", "TrainerCallback"))


class TransformersCallback:
    """Marks epochs, evaluations and checkpoints, and logs what the Trainer logs.

    Rows use the Trainer's names (`loss`, `learning_rate`, `eval_loss`, …), `epoch` and `global_step`. Between
    them, a row with `epoch` and `global_step` is logged every second. All ranks belong to the run; only rank
    0 logs.

    Args:
        every_s: seconds between two rows.
        settings: arguments for `runvitals.init` if no run is open.

    Raises:
        RuntimeError: transformers has not been imported.

    Example:
        >>> trainer = transformers.Trainer(…, callbacks=[TransformersCallback(project="digits")])
    """

    def __new__(cls, *args: Any, **settings: Any) -> TransformersCallback:
        """Create the callback with the base class of transformers."""
        callback: TransformersCallback = object.__new__(derive_class(cls, "transformers", *_BASES))
        return callback

    def __init__(self, every_s: float = 1.0, **settings: Any) -> None:
        self._callback = CallbackRun(every_s, settings)

    def __reduce__(self) -> tuple[Any, ...]:  # the derived class is not importable by name
        return TransformersCallback, (self._callback.every_s,), {"_callback": self._callback}

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Open the run, with the training arguments as config on rank 0, and mark the start."""
        first = state.is_world_process_zero
        name = getattr(args, "run_name", None)
        if name and name != args.output_dir:  # which older versions use as its default
            self._callback.settings.setdefault("name", name)
        self._callback.run(args.to_sanitized_dict() if first else None)
        self._mark(state, "training begins")

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Mark the epoch."""
        self._mark(state, f"epoch {int(state.epoch or 0)} begins")

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Log a row if the interval is over."""
        if state.is_world_process_zero and self._callback.due():
            self._row(state, {})

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **others: Any
    ) -> None:
        """Log the values that the Trainer logs."""
        if state.is_world_process_zero and logs:
            self._row(state, logs)

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Mark the end of the evaluation."""
        self._mark(state, "evaluation ends")

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        """Mark the checkpoint."""
        self._mark(state, "checkpoint")

    def _row(self, state: Any, values: dict[str, Any]) -> None:
        where = {"epoch": state.epoch or 0.0, "global_step": state.global_step}
        self._callback.run().log({**values, **where}, step=state.global_step)

    def _mark(self, state: Any, text: str) -> None:
        if state.is_world_process_zero:
            self._callback.run().mark(text, epoch=state.epoch or 0.0, step=state.global_step)
