"""The simulated training: steps, loss, logged rows and output."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runvitals.tools.simulate.block import ScenarioBlock

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


class SimulatedTraining:
    """The progress of the training.

    Args:
        ranks: number of ranks of the whole job.
        step_s: shortest duration of a step.
        duration_s: simulated duration of the run.

    Attributes:
        ranks: reduced when a host is lost.
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
        """The hyper-parameters."""
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

    def advance(self, block: ScenarioBlock, index: int) -> TrainingRow | None:
        """Advance to the sample with this index in the block; return a row if there is a new step."""
        speed, phase = float(block.speed[index]), block.phases[index]
        # With fewer ranks a step takes as long but processes fewer tokens.
        self._step += speed * block.lag_s / self._step_s
        step = int(self._step)
        if phase == "evaluate" and self._evaluated == self._saved:
            return None
        if phase != "evaluate" and (step == self._logged or not speed):
            return None
        z = block.training_noise[:, index].tolist()
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
        """Save a checkpoint; return the line to print."""
        self._saved = self._step
        return f"saved checkpoint-{int(self._saved)} (26.1 GB)\n"

    def resume(self) -> str:
        """Go back to the last checkpoint; return the line to print."""
        lost = int(self._step) - int(self._saved)
        self._step = self._saved
        self._logged = int(self._step) - 1
        return f"resuming from checkpoint-{int(self._saved)} with {self.ranks} ranks, {lost} steps lost\n"

    def line(self, row: TrainingRow, scenario_s: float) -> str | None:
        """Return the line to print for a row; None between the intervals at which rows are printed."""
        if "eval/loss" in row.data:
            return f"evaluation at step {row.step}: loss {row.data['eval/loss']:.4f}\n"
        if scenario_s - self._printed_s < _PRINT_EVERY_S:
            return None
        self._printed_s = scenario_s
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
