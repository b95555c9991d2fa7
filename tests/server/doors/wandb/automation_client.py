"""Creates, lists, changes and deletes automations with the installed client, and prints what it got.

python automation_client.py TEAM PROJECT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import wandb
from wandb.automations import (
    ArtifactEvent,
    DoNothing,
    OnAddArtifactAlias,
    OnRunMetric,
    OnRunState,
    RunEvent,
    SendNotification,
    SendWebhook,
)


def error(work: Callable[[], Any]) -> str:
    try:
        return f"no error: {work()}"
    except Exception as problem:  # noqa: BLE001 - of whatever class: its text counts
        return str(problem)


def shown(automation: Any) -> list[Any]:
    scope = automation.scope
    about = json.loads(automation.model_dump_json(include={"event"}))["event"]
    return [automation.name, automation.enabled, automation.description, scope.typename__, scope.name, about]


def main(team: str, name: str) -> dict[str, Any]:
    api = wandb.Api()
    project = api.project(name, team)
    webhook = next(api.webhook_integrations(entity=team))
    slack = next(api.slack_integrations(entity=team))
    call = SendWebhook.from_integration(webhook, payload={"text": "${run_name}"})
    tell = SendNotification.from_integration(slack)
    events = {
        "loss": OnRunMetric(scope=project, filter=RunEvent.metric("loss").avg(5).gt(1.5)),
        "jump": OnRunMetric(scope=project, filter=RunEvent.metric("acc").changes_by(frac=0.5)),
        "odd": OnRunMetric(scope=project, filter=RunEvent.metric("acc").zscore(30).abs() > 3),
        "failed": OnRunState(
            scope=project, filter=(RunEvent.state == "FAILED") & RunEvent.name.contains("resnet-")
        ),
        "alias": OnAddArtifactAlias(scope=project, filter=ArtifactEvent.alias.eq("prod")),
    }
    results: dict[str, Any] = {"integrations": [[webhook.name, webhook.url_endpoint], slack.channel_name]}
    created = {}
    for title, event in events.items():
        action = tell if title == "failed" else call
        created[title] = api.create_automation(event >> action, name=title, description=f"about {title}")
    results["created"] = [shown(one) for one in created.values()]
    results["listed"] = [shown(one) for one in api.automations(entity=team)]
    results["of the viewer"] = sorted(one.name for one in api.automations())
    results["payload"] = api.automation(name="loss", entity=team).action.request_payload
    changed = api.update_automation(created["loss"], enabled=False, description="kept")
    results["changed"] = shown(changed)
    api.delete_automation(created["odd"])
    results["left"] = sorted(one.name for one in api.automations(entity=team))
    results["twice"] = error(lambda: api.create_automation(events["loss"] >> call, name="loss"))
    results["nothing"] = error(lambda: api.create_automation(events["loss"] >> DoNothing(), name="none"))
    titled = SendNotification.from_integration(slack, title="Look")
    results["title"] = error(lambda: api.create_automation(events["loss"] >> titled, name="titled"))
    either = RunEvent.name.eq("a") | RunEvent.name.eq("b")
    filtered = OnRunMetric(scope=project, filter=(RunEvent.metric("loss") > 1) & either)
    results["either"] = error(lambda: api.create_automation(filtered >> call, name="either"))
    results["queue"] = error(lambda: api.create_run_queue("q", "local-container", entity=team))
    return results


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
