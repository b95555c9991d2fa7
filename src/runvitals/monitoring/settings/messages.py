"""Messages of the SDK to the user, on stderr."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from runvitals.base.terminal_text import inert

ANNOUNCED = "RUNVITALS_ANNOUNCED"
"""In the environment of a command that `runvitals run` has started: the run whose name and folder it has
printed."""
RECORDED_OUTPUT = "RUNVITALS_RECORDED_OUTPUT"
"""In the environment of a command whose output `runvitals run --console` records: the run."""
_MIN_TOKEN_LENGTH = 12


def notify(text: str) -> None:
    """Print one line to stderr, with secrets redacted and control characters removed.

    Never raises: stderr may be closed, None, or replaced by the script.
    """
    stream = sys.stderr
    if stream is None or not _is_open(stream):
        return
    if _may_hold_a_secret(text):
        from runvitals.monitoring.environment import redaction  # 1 ms, not needed for most messages

        text = redaction.text(text)
    try:
        # One write, so that concurrent output of the command cannot get between the text and its newline.
        stream.write(f"runvitals: {inert(text)}\n")
        stream.flush()
    except Exception:  # noqa: BLE001 - it may be an object of the script, which may raise anything
        return


def _may_hold_a_secret(text: str) -> bool:
    """Return whether the text contains an assignment or a long word that is not a path."""
    return any(sign in text for sign in "=:@") or any(
        len(word) >= _MIN_TOKEN_LENGTH and not word.startswith("/") for word in text.split()
    )


def _is_open(stream: TextIO) -> bool:
    """Return whether the stream can be written.

    Text left in the buffer of a stream without a descriptor would make Python exit with code 120.
    """
    try:
        os.fstat(stream.fileno())
    except ValueError:  # closed, or not a file, as in a notebook (`io.UnsupportedOperation`)
        return not getattr(stream, "closed", False)
    except OSError:
        return False
    except Exception:  # noqa: BLE001 - an object of the script that is not a file
        return True
    return True
