"""Run a benchmark and record its output: `python -m benchmarks.results NAME [options]`.

The output becomes a block of RESULTS.md with the command, the date and the machine. It replaces the previous
block of the same command; text around the blocks is kept. With `--quick`, the output is only printed.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.overhead import machine

RESULTS = Path(__file__).with_name("RESULTS.md")
TITLES = {
    "collectors": "Collectors",
    "sources": "Sources",
    "journal": "Journal",
    "overhead": "Overhead",
    "cloudwatch": "CloudWatch",
    "destinations": "Destinations",
    "backlog": "Backlog",
    "alerts": "Alerts",
    "mlflow": "MLflow",
    "ingest": "Ingest over HTTP",
    "doors": "Doors",
    "loads": "Large loads on the doors",
    "files": "Files",
    "imports": "Imports",
    "artifacts": "Artifacts",
    "clients": "Clients of wandb",
    "store": "Store",
    "metadata": "Metadata store",
    "accounts": "Accounts",
    "usage": "Usage",
    "findings": "Findings",
    "fleet": "Fleet",
    "start": "Start",
    "web": "Page",
    "reports": "Reports",
    "registries": "Registries",
    "leet": "Terminal UI",
}


def main() -> None:
    name, *options = sys.argv[1:]
    began, load = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), machine.load()
    output = run([sys.executable, "-m", f"benchmarks.{name}", *options])
    if "--quick" in options or "--help" in options or "-h" in options:
        return
    command = shlex.join(["scripts/bench", name, *options])
    where = f"{'; '.join(machine.describe())}. Load average before {load}, after {machine.load()}."
    body = output.strip("\n") if "\n|--" in output else f"```text\n{output.strip()}\n```"
    block = f"`{command}`, {began}. {where}\n{', '.join(machine.versions())}.\n\n{body}"
    RESULTS.write_text(with_block(RESULTS.read_text(), f"## {TITLES[name]}", command, block))


def run(command: list[str]) -> str:
    """Run a program, printing its output; returns the output.

    Raises:
        SystemExit: it failed; nothing is recorded.
    """
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        raise SystemExit(process.returncode)
    return "".join(lines)


def with_block(document: str, heading: str, command: str, block: str) -> str:
    """The document with a command's block replaced, or added at the end of its section.

    Example:
        >>> with_block("# Results\\n\\n## Store\\n\\nA note.\\n", "## Store", "scripts/bench store", "1 ms")
        '# Results\\n\\n## Store\\n\\nA note.\\n\\n<!-- scripts/bench store -->\\n1 ms\\n<!-- end -->\\n'
    """
    begin, end = f"<!-- {command} -->\n", "\n<!-- end -->\n"
    before, marker, rest = document.partition(begin)
    if marker:
        return before + begin + block + end + rest.partition(end)[2]
    before, marker, rest = document.partition(heading + "\n")
    if not marker:
        return f"{document.rstrip()}\n\n{heading}\n\n{begin}{block}{end}"
    section, next_heading, tail = rest.partition("\n## ")
    return f"{before}{heading}\n{section.rstrip()}\n\n{begin}{block}{end}{next_heading}{tail}"


if __name__ == "__main__":
    main()
