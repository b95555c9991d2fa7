"""`Trace`: the steps of a chain of language models, under the name of `wandb.sdk.data_types.trace_tree`."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from importlib import import_module
from typing import Any, Final

from runvitals.base.json_codec import dumps
from runvitals.model.values import Sanitizer

_DEEPEST: Final = 50
_STYLE: Final = (
    "<style>:root{color-scheme:light dark}body{font:13px system-ui}details{margin-left:14px}"
    "pre{margin:2px 0 6px 14px;white-space:pre-wrap}</style>"
)


class Trace:
    """A step, with those that it called. `log` records the tree as a page.

    Args:
        name: of the step.
        kind: such as `LLM`, `CHAIN`, `AGENT` or `TOOL`.
        status_code: such as `SUCCESS` or `ERROR`.
        status_message: what went wrong.
        metadata: what else is known.
        start_time_ms, end_time_ms: UTC.
        inputs, outputs: what the step got and returned.
        model_dict: what it ran.

    Example:
        >>> root = Trace("answer", kind="CHAIN", start_time_ms=0, end_time_ms=1200)
        >>> root.add_child(Trace("model", kind="LLM", inputs={"q": "2+2"}, outputs={"a": "4"}))
        >>> root.log("trace")
    """

    def __init__(
        self,
        name: str,
        kind: str | None = None,
        status_code: str | None = None,
        status_message: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        start_time_ms: int | None = None,
        end_time_ms: int | None = None,
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        model_dict: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.kind = kind
        self.status_code = status_code
        self.status_message = status_message
        self.metadata = dict(metadata or {})
        self.start_time_ms = start_time_ms
        self.end_time_ms = end_time_ms
        self.model_dict = model_dict
        self._calls: list[dict[str, Any]] = []
        self._children: list[Trace] = []
        if inputs is not None or outputs is not None:
            self.add_inputs_and_outputs(inputs or {}, outputs or {})

    def add_child(self, child: Trace) -> Trace:
        """Add a step that this one called; return this one."""
        self._children.append(child)
        return self

    def add_inputs_and_outputs(self, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> Trace:
        """Add what the step got and returned; return the step."""
        self._calls.append({"inputs": dict(inputs), "outputs": dict(outputs)})
        return self

    def add_metadata(self, metadata: Mapping[str, Any]) -> Trace:
        """Add what else is known; return the step."""
        self.metadata.update(metadata)
        return self

    def log(self, name: str) -> None:
        """Log the tree in the open run.

        Raises:
            RuntimeError: no run is open.
        """
        package = import_module("runvitals")
        package.log({name: package.Html(_STYLE + self._html(0))})

    def _html(self, depth: int) -> str:
        about = [str(part) for part in (self.kind, self.status_code, self._duration()) if part]
        head = f"<b>{escape(str(self.name))}</b> {escape(' · '.join(about))}"
        fields = {
            "message": self.status_message, "metadata": self.metadata, "calls": self._calls,
            "model": self.model_dict,
        }  # fmt: skip
        body = "".join(
            f"{title}<pre>{escape(dumps(Sanitizer().value(value)).decode())}</pre>"
            for title, value in fields.items()
            if value
        )
        if depth < _DEEPEST:
            body += "".join(child._html(depth + 1) for child in self._children)
        elif self._children:
            body += f"{len(self._children)} more steps"
        return f"<details{' open' if depth < 2 else ''}><summary>{head}</summary>{body}</details>"

    def _duration(self) -> str:
        if self.start_time_ms is None or self.end_time_ms is None:
            return ""
        return f"{self.end_time_ms - self.start_time_ms:,} ms"
