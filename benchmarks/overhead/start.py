"""The duration of the calls in a training script: import, init, log, finish."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from benchmarks.overhead.peers import Peer
from benchmarks.overhead.plan import Plan
from benchmarks.overhead.session import Session

# Between start and finish, so that they do not overlap.
_PAUSE_S = 0.3


@dataclass(frozen=True)
class Calls:
    """Durations of a tool's calls: in the first fresh process, and the median of all.

    `import` includes everything that the first use of the tool's functions would import. `init` starts a run
    and the sampling; `first_use_ms` is both together. `log_us` is for a row of two values, in a loop without
    pauses; None if not measured.
    """

    label: str
    import_ms: float
    first_import_ms: float
    init_ms: float
    first_init_ms: float
    first_use_ms: float
    finish_ms: float
    log_us: float | None


def measure(peer: Peer, plan: Plan) -> Calls:
    """Measure in `plan.processes` fresh training processes, each with an empty data folder."""
    imports, inits, finishes, logs = [], [], [], []
    for _ in range(plan.processes):
        with Session(peer, 1.0) as session:
            imports.append(float(session.ready["import_ms"]))
            inits.append(float(session.ready["init_ms"]))
            time.sleep(_PAUSE_S)
            if peer.log_calls:
                logs.append(median(session.ask(f"log {peer.log_calls}")["us"]))
                time.sleep(_PAUSE_S)
            finishes.append(session.end())
    return Calls(
        label=peer.label,
        import_ms=median(imports),
        first_import_ms=imports[0],
        init_ms=median(inits),
        first_init_ms=inits[0],
        first_use_ms=median(map(sum, zip(imports, inits, strict=True))),
        finish_ms=median(finishes),
        log_us=median(logs) if logs else None,
    )
