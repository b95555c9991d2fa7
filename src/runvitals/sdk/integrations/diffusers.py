"""For the pipelines of Hugging Face Diffusers, under the name of `wandb.integration.diffusers`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from runvitals.sdk.integrations.callback_run import CallbackRun
from runvitals.sdk.media.values import Image

_SIMPLE = (str, int, float, bool)


class PipelineLogging:
    """Logs the pictures of each call of a pipeline, with their prompts, and its arguments.

    Pipelines that are made after it was turned on are followed.
    """

    def __init__(self) -> None:
        self._callback = CallbackRun(0, {})
        self._on = False

    def __call__(self, init: Mapping[str, Any] | None = None) -> None:
        """Turn it on; see `enable`."""
        self.enable(init)

    def enable(self, init: Mapping[str, Any] | None = None) -> None:
        """Turn it on.

        Args:
            init: arguments for `runvitals.init` if no run is open.

        Raises:
            ModuleNotFoundError: Diffusers is not installed.
        """
        from diffusers import DiffusionPipeline

        base: Any = DiffusionPipeline
        self._callback = CallbackRun(0, init or {})
        self._on = True
        register = base.register_modules
        if not hasattr(register, "__wrapped__"):
            base.register_modules = self._with_calls_logged(register)

    def disable(self) -> None:
        """Turn it off. The run stays open."""
        self._on = False

    def _with_calls_logged(self, register: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(register)
        def register_and_follow(pipeline: Any, *arguments: Any, **others: Any) -> Any:
            owner: Any = next((base for base in type(pipeline).__mro__ if "__call__" in vars(base)), None)
            if owner is not None and not hasattr(vars(owner)["__call__"], "of_runvitals"):
                owner.__call__ = self._logged(vars(owner)["__call__"])
            return register(pipeline, *arguments, **others)

        return register_and_follow

    def _logged(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def call_and_log(pipeline: Any, *arguments: Any, **others: Any) -> Any:
            result = call(pipeline, *arguments, **others)
            if self._on:
                self._log(pipeline, arguments, others, result)
            return result

        call_and_log.of_runvitals = True  # type: ignore[attr-defined]
        return call_and_log

    def _log(self, pipeline: Any, arguments: Any, others: Mapping[str, Any], result: Any) -> None:
        images = getattr(result, "images", None)
        if images is None:
            return
        prompt = others.get("prompt", arguments[0] if arguments else None)
        prompts = (
            [prompt] if isinstance(prompt, str) else list(prompt) if isinstance(prompt, (list, tuple)) else []
        )
        each = max(len(images) // max(len(prompts), 1), 1)
        captions = [
            prompts[min(i // each, len(prompts) - 1)] if prompts else None for i in range(len(images))
        ]
        run = self._callback.run()
        simple = {name: value for name, value in others.items() if isinstance(value, _SIMPLE)}
        run.config.update({"pipeline": type(pipeline).__name__, **simple})
        run.log({"images": [Image(image, caption) for image, caption in zip(images, captions, strict=True)]})


autolog = PipelineLogging()
"""Call it to log what pipelines make."""
