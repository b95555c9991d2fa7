"""Speed of the page in Chromium: first chart, all charts in view, zoom, live view, bytes and memory.

    scripts/bench web [--quick] [--only fleet|day|lineage|live|storage|trackers|watch|workspace] [--no-peers]

    fleet      4 hosts × 8 GPUs × 2 h, about 10 million values, from journals and from a server's store
    day        60 metrics × 24 h at 1 s, beside pages with the same series in ECharts and in Plotly
    lineage    what 3 and 300 runs and versions were made from, as a graph
    live       64 devices × 8 metrics, and an hour of samples, played faster than they would come
    storage    what 3, 300 and 10,000 runs take
    trackers   first loads beside Trackio, Aim and MLflow, which PyPI installs
    watch      home, runs, hosts and a run of 8 GPUs at 1 Hz: layout shift, processor time, memory
    workspace  50 runs × 24 charts of a project, live

Every figure is the median of several loads without the browser's cache. Times are those of the browser's own
clock, from the start of the navigation to the frame after the drawing. `--quick` measures shorter runs once
and records nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.web import day, fleet, lineage, live, storage, trackers, watch, workspace

SCENARIOS = {
    "fleet": fleet.measure,
    "day": day.measure,
    "lineage": lineage.measure,
    "live": live.measure,
    "storage": storage.measure,
    "trackers": trackers.measure,
    "watch": watch.measure,
    "workspace": workspace.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="shorter runs, loaded once, nothing recorded")
    parser.add_argument("--only", choices=sorted(SCENARIOS), help="only this part")
    parser.add_argument(
        "--no-peers",
        action="store_true",
        help="without other libraries and trackers, which npm and PyPI install",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runvitals-bench-web-") as folder:
        for name, measure in SCENARIOS.items():
            if options.only in (None, name):
                run_folder = Path(folder, name)
                run_folder.mkdir()
                for line in measure(run_folder, options.quick, not options.no_peers):
                    print(line, flush=True)
                print(flush=True)


if __name__ == "__main__":
    main()
