"""What a change of a metric says: a probable cause, what the training did, or what follows from it."""

from __future__ import annotations

import re
from typing import Final, Literal

from runvitals.readers.journals.key_filter import find

Part = Literal["cause", "logged", "effect", "volume"]
PARTS: Final[tuple[Part, ...]] = ("cause", "logged", "effect", "volume")
"""In the order in which they are returned."""

_CAUSES: Final = re.compile(
    r"cpu\.iowait|cpu\.steal|(?:cpu|memory|io)\.pressure|\.throttle\.|throttled|throttleScore|swap\.used"
    r"|oomKills|tcpRetransmit|retrans|\.(?:errors|drops)$|xmitWait|Exceeded$|pcieReplays|nvlink\w+Errors"
    r"|MemoryErrors$|criticalErrors|remap|recoveryCount|pcieLink(?:Gen|Width|Speed)|mem_ecc|sram_ecc"
    r"|execution_errors|iciLinkHealth|\.utilization$|TransferLatency|collectiveE2ELatency"
)
_LOGGED_CAUSES: Final = re.compile(
    r"(?:data|load(?:er|ing)?|fetch|batch|io)[_/. ]?(?:time|wait|sec|ms)", re.IGNORECASE
)
_EFFECTS: Final = re.compile(
    r"^(?:gpu|tpu|trn|ipu)\.|^cpu$|^cpu\.(?:mean|user|system)|memory_percent|proc\.memory|^fan\.|powerWatts"
)


def part_of(kind: Literal["sampled", "logged"], key: str) -> Part:
    """Return what a change of a series says.

    Example:
        >>> part_of("sampled", "cpu.iowait"), part_of("sampled", "gpu.3.gpu"), part_of("logged", "loss")
        ('cause', 'effect', 'logged')
    """
    if kind == "logged":
        return "cause" if _LOGGED_CAUSES.search(key) else "logged"
    template = template_of(key)
    if _CAUSES.search(template):
        return "cause"
    return "effect" if _EFFECTS.search(template) else "volume"


def template_of(key: str) -> str:
    """Return the key template of a sampled series: the same for all devices."""
    match = find(key)
    return key if match is None else match.metric.key
