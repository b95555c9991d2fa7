"""Write runs with Trackio: `trackio_runs.py RUNS`; its folder is `TRACKIO_DIR`."""

import sys

import trackio
from values import PROJECT, config_of, rows_of

for run in range(int(sys.argv[1])):
    trackio.init(project=PROJECT, name=f"run{run:03}", config=config_of(run), embed=False)
    for row in rows_of(run):
        trackio.log(row)
    trackio.finish()
