"""Writes and reads reports with `wandb_workspaces`, and writes what it got as one JSON object.

python report_client.py ENTITY/PROJECT RESULT
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import wandb
import wandb_workspaces.reports.v2 as wr


def blocks(path: str) -> list[Any]:
    entity, project = path.split("/")
    runs = wr.Runset(
        entity,
        project,
        name="fast",
        query="base",
        filters="Config('lr') >= 0.1 and Metric('State') in ['finished']",
    )
    panels = [
        wr.LinePlot(x=wr.Metric("Step"), y=[wr.Metric("loss")], log_y=True, range_x=(0, 100)),
        wr.BarPlot(metrics=[wr.Metric("acc")]),
        wr.ScatterPlot(x=wr.Config("lr"), y=wr.SummaryMetric("loss")),
        wr.RunComparer(),
        wr.MarkdownPanel("a *note*"),
    ]
    return [
        wr.H1("Result"),
        wr.P(["A rate of ", wr.InlineCode("0.1"), " is best, see ", wr.Link("this", "https://x.org/a_(b)")]),
        wr.UnorderedList(["one", "two"]),
        wr.CheckedList([wr.CheckedListItem("done", checked=True)]),
        wr.CodeBlock("print('*')", language="python"),
        wr.LatexBlock("a^2"),
        wr.Video("https://videos.example.org/1"),
        wr.PanelGrid(runsets=[runs], panels=panels),
        wr.P("The end"),
    ]


def main(path: str) -> dict[str, Any]:
    entity, project = path.split("/")
    results: dict[str, Any] = {}
    report = wr.Report(
        project=project, entity=entity, title="Which rate", description="d", blocks=blocks(path)
    )
    report.save(draft=True)
    results["draft"] = report.id
    report.save()
    results["same id"] = report.id == results["draft"]
    results["url"] = report.url

    loaded = wr.Report.from_url(report.url)
    both = (report, loaded)
    grids = [next(block for block in each.blocks if isinstance(block, wr.PanelGrid)) for each in both]
    results["panels"] = [[sorted(map(str, vars(panel).items())) for panel in grid.panels] for grid in grids]
    results["run sets"] = [[grid.runsets[0].name, grid.runsets[0].query] for grid in grids]
    results["texts"] = [[repr(block) for block in each.blocks if block not in grids] for each in both]
    loaded.blocks[0] = wr.H1("A better result")
    loaded.title = "Which rate is best"
    loaded.save()

    listed = list(wandb.Api().reports(path))
    results["listed"] = [[each.display_name, each.id == report.id, each.user["username"]] for each in listed]
    results["by name"] = [each.id for each in wandb.Api().reports(path, name="Which rate is best")] == [
        report.id
    ]
    results["again"] = wr.Report.from_url(report.url).blocks[0].text

    stale = wr.Report.from_url(report.url)
    other = wr.Report.from_url(report.url)
    other.blocks[0] = wr.H1("First")
    other.save()
    stale.blocks[0] = wr.H1("Second")
    try:
        stale.save()
        results["conflict"] = "none"
    except Exception as error:  # noqa: BLE001 - the test compares its text
        results["conflict"] = str(error)
    stale = wr.Report.from_url(report.url)
    other = wr.Report.from_url(report.url)
    other.blocks[0] = wr.H1("Mine")
    other.save()
    stale.blocks.append(wr.P("Yours"))
    stale.save()
    merged = wr.Report.from_url(report.url)
    results["merged"] = [merged.blocks[0].text, merged.blocks[-1].text]

    results["no link"] = merged.get_share_url()
    results["link"] = merged.enable_share_link()
    results["known link"] = merged.get_share_url()
    results["disabled"] = [merged.disable_share_link(), merged.get_share_url()]

    text = "Config('lr') >= 1 or SummaryMetric('loss') <= 2 and Metric('State') == 'finished'"
    either = wr.Report(
        project=project,
        entity=entity,
        blocks=[wr.PanelGrid(runsets=[wr.Runset(entity, project, filters=text)])],
    )
    either.save(draft=True)
    results["or"] = [either.url, text, wr.Report.from_url(either.url).blocks[0].runsets[0].filters]
    clone = wr.Report.from_url(report.url).save(clone=True)
    results["clone"] = clone.id != report.id
    results["deleted"] = clone.delete()
    results["left"] = len(list(wandb.Api().reports(path)))
    return results


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(main(sys.argv[1])))
