"""The subcommands of `runvitals`, each with its line in `runvitals --help`, which loads none of them."""

from __future__ import annotations

from typing import Final

COMMANDS: Final = {
    "run": "run a command and record the machine's metrics meanwhile",
    "ui": "show the runs of this machine in a browser, live",
    "leet": "charts of runs in the terminal, live",
    "mcp": "let assistants (language models) read runs, over the Model Context Protocol",
    "runs": "list the runs in the data folder, newest first",
    "show": "show a run: state, facts, events, and statistics of all metrics",
    "findings": "say what is wrong with a run, why, what it costs, and what to do",
    "export": "export all samples of a run as CSV or JSON lines",
    "files": "list or copy the files that a run saved or logged",
    "artifact": "put, get, list and delete artifacts: versions of files",
    "registry": "list, download and link models and other versions in the registries of a server",
    "report": "write a report of a server to a file: HTML, Markdown or PDF",
    "sweep": "make a sweep, a search for the best parameters, or control one",
    "agent": "start the runs of a sweep, one after the other",
    "import": "import runs of W&B, MLflow, TensorBoard, Neptune, trackio, CSV",
    "sample": "read all metrics of this machine once",
    "top": "live view of this machine in the terminal, without a run",
    "doctor": "check what works on this machine and suggest fixes",
    "simulate": "write a simulated run on any accelerators, for demos and load tests",
    "metrics": "list all metrics: key, unit, kind, source",
    "settings": "list all settings with their current values and origins",
    "trust": "let a project's runvitals.toml set servers, destinations and paths",
    "sync": "deliver runs, or the rest of them, to a server",
    "login": "store the key for a server",
    "logout": "delete the stored key for a server",
    "whoami": "show whom the stored key of a server stands for",
    "relay": "deliver runs while they are running; `relay status` shows progress",
    "cloudwatch": "send neuron-monitor's reports to CloudWatch: neuron-monitor | runvitals cloudwatch",
    "neuron": "write and check the configuration file of AWS's neuron-monitor",
    "server": "store and show the runs of many machines",
    "docs": "print the guides in the terminal, list their topics, search them",
    "token": "create, list and revoke the access tokens of a server",
    "user": "create, change and remove the users of a server",
    "team": "create and remove the teams of a server, and change their members",
    "project": "create, share, transfer and delete the projects of a server",
    "key": "create, rotate and revoke the API keys of users and service accounts",
    "service-account": "create, list and disable the accounts of programs, such as CI, on a server",
    "invite": "invite users to the teams of a server",
    "role": "create, change and delete the custom roles of a server",
    "organisation": "show and change the settings of a server, and read its audit log",
    "alerts": "list, check, apply, test and mute the alert rules of a team",
    "automations": "list, apply, test and switch the automations of a team",
    "usage": "what the runs of a server used in a month, and what it cost",
    "store": "maintain the store of a server: stats, check, repair, compact, drop, backup, migrate",
}
EXTRAS = {"leet": "tui", "mcp": "mcp"}
"""Command → extra that installs its packages, if it is not `server`."""
