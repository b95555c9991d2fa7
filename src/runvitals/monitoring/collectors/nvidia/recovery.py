"""The action that recovers a GPU, as the driver says (NVML field 230)."""

from __future__ import annotations

# As nvidia-smi writes them, by NVML's number.
ACTIONS = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")
_NEEDS = (
    "",
    "a reset of the GPU",
    "a reboot of the host",
    "all peer-to-peer traffic to be drained",
    "all work to be drained, then a reset of the GPU",
)


def recovery_events(index: int, before: int, action: int) -> list[dict[str, object]]:
    """Return the event for a change of the recovery action, if it is one.

    >>> [event["text"] for event in recovery_events(14, 0, 1)]
    ['GPU 14 needs a reset of the GPU (recovery action Reset): its readings may be wrong']
    """
    if action == before:
        return []
    if action == 0:
        text = f"GPU {index} needs no recovery any more"
        return [{"name": "recovery_done", "level": "info", "text": text, "gpu": index}]
    needs = _NEEDS[action] if action < len(_NEEDS) else "a recovery"
    name = ACTIONS[action] if action < len(ACTIONS) else str(action)
    text = f"GPU {index} needs {needs} (recovery action {name}): its readings may be wrong"
    return [{"name": "recovery_needed", "level": "error", "text": text, "gpu": index, "action": action}]
