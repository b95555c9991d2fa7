"""The states of a run: apart from `state`, which the monitor loads and which therefore loads no `typing`."""

from __future__ import annotations

from typing import Literal

State = Literal["running", "finished", "failed", "crashed", "stopped", "lost"]
"""`runvitals.model.state` explains them."""
