"""What the SDK says to the person in front of the terminal."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from runvitals.terminal import inert

_SHORTEST_TOKEN = 12


def tell(text: str) -> None:
    """One line for the person, on stderr, without secrets and without what a terminal would obey.

    A stderr that is closed, or none, or anything that a script has put in its place, is no reason to end a
    training.
    """
    stream = sys.stderr
    if stream is None or not _is_open(stream):
        return
    if _may_hold_a_secret(text):
        from runvitals.environment import redaction  # 1 ms that most messages need not pay

        text = redaction.text(text)
    try:
        # In one piece, or what the command prints at the same moment comes between the text and its newline.
        stream.write(f"runvitals: {inert(text)}\n")
        stream.flush()
    except Exception:  # noqa: BLE001 - it may be an object of the script's, which raises what it likes
        return


def _may_hold_a_secret(text: str) -> bool:
    """Whether there is a sign before a value, or a long word that is no path."""
    return any(sign in text for sign in "=:@") or any(
        len(word) >= _SHORTEST_TOKEN and not word.startswith("/") for word in text.split()
    )


def _is_open(stream: TextIO) -> bool:
    """Whether something can be written: what stays in the buffer of a stream without a descriptor would make
    Python end with exit code 120.
    """
    try:
        os.fstat(stream.fileno())
    except ValueError:  # closed; or no file at all, as in a notebook, which `io.UnsupportedOperation` tells
        return not getattr(stream, "closed", False)
    except OSError:
        return False
    except Exception:  # noqa: BLE001 - an object of the script's, which is no file
        return True
    return True
