"""Logs gradients and parameters of PyTorch models as histograms: `run.watch`.

PyTorch is never imported: a model is what has PyTorch's methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from runvitals.sdk import arrays
from runvitals.sdk.media.base import ArrayHistogram

LOGS: dict[str | None, tuple[bool, bool]] = {
    "gradients": (True, False),
    "parameters": (False, True),
    "all": (True, True),
    None: (False, False),
}
"""Value of `log` → whether gradients and whether parameters are logged."""
Log = Callable[..., None]


class Watching:
    """The models that a run watches.

    Args:
        log: `Run.log`.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._watched: list[tuple[Any, list[Any]]] = []  # (the model, what removes its hooks)
        self._added = 0

    def add(self, models: Any, log: str | None, log_freq: int, idx: int | None) -> None:
        """Watch these models; see `Run.watch`.

        Raises:
            TypeError: not a module of PyTorch.
            ValueError: an unknown `log`, a frequency below 1, or a model that is already watched.
        """
        if log not in LOGS:
            raise ValueError(f"watch(): unknown log {log!r}; expected gradients, parameters, all or None")
        if not isinstance(log_freq, int) or log_freq < 1:
            raise ValueError(f"watch(): log_freq is {log_freq!r}; expected an integer of at least 1")
        several = models if isinstance(models, (list, tuple)) else (models,)
        for model in several:
            if not callable(getattr(model, "named_parameters", None)):
                raise TypeError(f"watch(): expected a module of PyTorch, not {type(model).__name__}")
            if any(watched is model for watched, _ in self._watched):
                raise ValueError("watch(): this model is already watched; call unwatch() first")
        gradients, parameters = LOGS[log]
        for position, model in enumerate(several):
            number = self._added if idx is None else idx + position
            self._added += 1
            prefix = f"graph_{number}" if number else ""
            hooks: list[Any] = []
            self._watched.append((model, hooks))
            if gradients:
                hooks += self._gradient_hooks(model, prefix, log_freq)
            if parameters:
                hooks.append(self._parameter_hook(model, prefix, log_freq))

    def stop(self, models: Any = None) -> None:
        """Remove the hooks of these models, or of all."""
        several = models if isinstance(models, (list, tuple)) else (models,)
        others = []
        for model, hooks in self._watched:
            if models is None or any(model is chosen for chosen in several):
                for hook in hooks:
                    hook.remove()
            else:
                others.append((model, hooks))
        self._watched = others

    def _gradient_hooks(self, model: Any, prefix: str, log_freq: int) -> list[Any]:
        hooks = []
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                logger = self._gradient_logger(f"gradients/{prefix}{name}", _Turns(log_freq))
                hooks.append(parameter.register_hook(logger))
        return hooks

    def _gradient_logger(self, name: str, turns: _Turns) -> Callable[[Any], None]:
        def logged(gradient: Any) -> None:
            if turns.due():
                self._log_tensors({name: gradient})

        return logged

    def _parameter_hook(self, model: Any, prefix: str, log_freq: int) -> Any:
        turns = _Turns(log_freq)

        def logged(module: Any, inputs: Any, output: Any) -> None:
            if turns.due():
                parameters = model.named_parameters()
                self._log_tensors({f"parameters/{prefix}{name}": tensor for name, tensor in parameters})

        return model.register_forward_hook(logged)

    def _log_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Log histograms at the step of the next row."""
        histograms = {name: _histogram(tensor) for name, tensor in tensors.items()}
        self._log({name: value for name, value in histograms.items() if value is not None}, commit=False)


class _Turns:
    """Counts passes: every n-th is due."""

    __slots__ = ("_every", "_passed")

    def __init__(self, every: int) -> None:
        self._every = every
        self._passed = 0

    def due(self) -> bool:
        self._passed += 1
        if self._passed < self._every:
            return False
        self._passed = 0
        return True


def _histogram(tensor: Any) -> ArrayHistogram | None:
    """Return the histogram of a tensor on any device; None if it is empty or has no numbers."""
    tensor = tensor.detach() if callable(getattr(tensor, "detach", None)) else tensor
    if getattr(tensor, "is_sparse", False) is True:
        tensor = tensor.coalesce().values()
    shape = tuple(int(length) for length in tensor.shape) or (1,)
    size = 1
    for length in shape:
        size *= length
    if not size:
        return None
    flat = tensor if tuple(tensor.shape) else tensor.reshape(1)
    summary = arrays.histogram(flat, shape, size)
    return ArrayHistogram(summary) if isinstance(summary, dict) else None
