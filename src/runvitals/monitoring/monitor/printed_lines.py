r"""Makes lines to record of what a process prints: progress bars collapsed, without secrets.

A progress bar writes its line again and again, separated by `\r`. Only its last state before each reading is
kept, and an incomplete line is recorded at most every `PARTIAL_S`, followed by `\r`: readers let what follows
replace it.
"""

from __future__ import annotations

from runvitals.monitoring.environment.secret_hints import may_hold_secret

PARTIAL_S = 10.0
"""How often an incomplete line is recorded."""
_LONGEST_LINE = 32 * 1024
_KEY_BEGIN, _KEY_END = "-----BEGIN ", "-----END "


class PrintedLines:
    r"""The lines of one stream.

    Example:
        >>> lines = PrintedLines()
        >>> lines.add(b"1 %\r2 %", 0.0), lines.add(b"\r3 %\ndone\nTOKEN=abc", 1.0), lines.rest()
        ('', '3 %\ndone\n', 'TOKEN=***\n')
    """

    __slots__ = ("_begun", "_in_key", "_partial_at_s", "_recorded")

    def __init__(self) -> None:
        self._begun = b""  # a line that is not complete yet
        self._recorded = b""  # of it, what was recorded
        self._partial_at_s = -1.0
        self._in_key = False

    def add(self, data: bytes, now_s: float) -> str:
        """Return what to record: complete lines, and an incomplete one that has been waiting for long."""
        *complete, begun = (self._begun + data).split(b"\n")
        self._begun = _last_state(begun)[-_LONGEST_LINE:]
        text = "".join(self._safe(line) for line in complete)
        if complete:
            self._partial_at_s = -1.0
            self._recorded = b""
        if not self._begun.strip(b"\r") or self._begun == self._recorded:
            return text
        if self._partial_at_s < 0:
            self._partial_at_s = now_s + PARTIAL_S
        if now_s >= self._partial_at_s:
            self._partial_at_s = now_s + PARTIAL_S
            self._recorded = self._begun
            text += self._safe(self._begun)[:-1] + "\r"
        return text

    def rest(self) -> str:
        """Return the incomplete line, as the process has ended."""
        begun, self._begun = self._begun, b""
        return self._safe(begun) if begun.strip(b"\r") else ""

    def _safe(self, line: bytes) -> str:
        """Return a line without secrets, with its newline."""
        text = _last_state(line)[-_LONGEST_LINE:].decode("utf-8", "replace").rstrip("\r")
        if _KEY_BEGIN in text and "PRIVATE KEY" in text:
            self._in_key = True
        if self._in_key:
            self._in_key = _KEY_END not in text
            return "***\n"
        if may_hold_secret(text):
            from runvitals.monitoring.environment import redaction  # few programs print such lines often

            text = redaction.text(text)
        return text + "\n"


def _last_state(line: bytes) -> bytes:
    r"""Return what is after the last `\r`; one at the end, as in `\r\n`, stays."""
    body = line.rstrip(b"\r")
    return body[body.rfind(b"\r") + 1 :] + line[len(body) :]
