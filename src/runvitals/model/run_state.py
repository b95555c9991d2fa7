"""The states of a run. A module of its own: what determines the state must not import the run."""

from __future__ import annotations

from typing import Literal

State = Literal["running", "finished", "failed", "crashed", "stopped", "lost"]
"""`runvitals.model.state` explains them."""
