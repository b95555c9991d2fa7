"""The simulated training itself: steps, loss, what it logs and prints."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runvitals.simulate.block import ScenarioBlock

_WARMUP_STEPS = 200.0
_PEAK_RATE = 3e-4
_MODEL = "transformer-13b"
_TOKENS_PER_RANK = 16_384
_PRINT_EVERY_S = 20.0


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One `log()` call."""

    step: int
    data: dict[str, float]


class Training:
    """Where the training stands.

    Args:
        ranks: of the whole job.
        step_s: what one step takes at best.
        duration_s: of the story.

    Attributes:
        ranks: may shrink when a host is lost.
    """

    def __init__(self, ranks: int, step_s: float, duration_s: float) -> None:
        self.ranks = ranks
        self._all_ranks = ranks
        self._step_s = step_s
        self._steps = max(10.0, 0.75 * duration_s / step_s)
        self._step = 0.0
        self._logged = -1
        self._saved = 0.0
        self._printed_s = -_PRINT_EVERY_S
        self._evaluated = -1.0

    @property
    def config(self) -> dict[str, object]:
        """Its hyper-parameters."""
        return {
            "simulated": True,
            "model": _MODEL,
            "lr": _PEAK_RATE,
            "warmup_steps": int(_WARMUP_STEPS),
            "steps": int(self._steps),
            "world_size": self._all_ranks,
            "tokens_per_rank": _TOKENS_PER_RANK,
            "precision": "bf16",
        }

    def advance(self, block: ScenarioBlock, place: int) -> TrainingRow | None:
        """Go on to the sample that has this place in the block; a row where there is anything new to log."""
        speed, phase = float(block.speed[place]), block.phases[place]
        # With fewer ranks each step takes as long, and less is learned in it.
        self._step += speed * block.lag_s / self._step_s
        step = int(self._step)
        if phase == "evaluate" and self._evaluated == self._saved:
            return None
        if phase != "evaluate" and (step == self._logged or not speed):
            return None
        z = block.whims[:, place].tolist()
        if phase == "evaluate":
            self._evaluated = self._saved
            return TrainingRow(step, {"eval/loss": round(self._loss(step) * 1.03 + 0.004 * z[0], 5)})
        self._logged = step
        tokens = _TOKENS_PER_RANK * self.ranks * speed / self._step_s
        return TrainingRow(
            step,
            {
                "train/loss": round(self._loss(step) + 0.02 * z[1], 5),
                "train/grad_norm": round(abs(0.4 + 3.0 / math.sqrt(step + 1.0) + 0.06 * z[2]), 4),
                "train/lr": self._rate(step),
                "perf/tokens_per_second": round(tokens * (1.0 + 0.01 * z[3]), 1),
                "perf/step_seconds": round(self._step_s / speed * (1.0 + 0.01 * z[3]), 4),
                "perf/mfu": round(0.43 * speed * (1.0 + 0.01 * z[3]), 4),
            },
        )

    def save(self) -> str:
        """Write a checkpoint; what is printed of it."""
        self._saved = self._step
        return f"saved checkpoint-{int(self._saved)} (26.1 GB)\n"

    def go_back(self) -> str:
        """Begin again from the last checkpoint; what is printed of it."""
        lost = int(self._step) - int(self._saved)
        self._step = self._saved
        self._logged = int(self._step) - 1
        return f"resuming from checkpoint-{int(self._saved)} with {self.ranks} ranks, {lost} steps lost\n"

    def line(self, row: TrainingRow, story_s: float) -> str | None:
        """What is printed of a row, or None: not every row is."""
        if "eval/loss" in row.data:
            return f"evaluation at step {row.step}: loss {row.data['eval/loss']:.4f}\n"
        if story_s - self._printed_s < _PRINT_EVERY_S:
            return None
        self._printed_s = story_s
        data = row.data
        return (
            f"step {row.step:>6}/{int(self._steps)}  loss {data['train/loss']:.4f}  "
            f"lr {data['train/lr']:.2e}  {data['perf/tokens_per_second']:,.0f} tokens/s  "
            f"MFU {100.0 * data['perf/mfu']:.1f} %\n"
        )

    def _loss(self, step: float) -> float:
        return 1.72 + 9.2 / math.pow(step + 12.0, 0.42)

    def _rate(self, step: float) -> float:
        if step < _WARMUP_STEPS:
            return _PEAK_RATE * (step + 1.0) / _WARMUP_STEPS
        done = min(1.0, (step - _WARMUP_STEPS) / max(1.0, self._steps - _WARMUP_STEPS))
        return round(_PEAK_RATE * (0.1 + 0.45 * (1.0 + math.cos(math.pi * done))), 9)
