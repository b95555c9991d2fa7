"""Write runs with Aim: `aim_runs.py RUNS`, into the repository of the current folder. Prints a run's hash."""

import sys

from aim import Run
from values import PROJECT, config_of, rows_of

for number in range(int(sys.argv[1])):
    run = Run(repo=".", experiment=PROJECT, system_tracking_interval=None, capture_terminal_logs=False)
    run.name = f"run{number:03}"
    run["hparams"] = config_of(number)
    for step, row in enumerate(rows_of(number)):
        run.track(row, step=step)
    run.close()
print(run.hash)
