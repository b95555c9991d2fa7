// The charts of the series that decided a finding: one each, in the order of the evidence.

import type { SeriesInfo } from '../../base/api';
import type { Evidence } from '../../base/wire';
import { slotsOf } from '../../chart/palette';
import { plan, type ChartPlan } from '../runs/charts/chartPlan';

export interface EvidenceChart {
  evidence: Evidence;
  /** null if the run has no such series: it is a value that the training logged. */
  plan: ChartPlan | null;
}

export function evidenceCharts(evidence: readonly Evidence[], series: readonly SeriesInfo[]): EvidenceChart[] {
  const slots = slotsOf(series);
  return evidence.map((each) => {
    const own = series.filter(({ key, host }) => key === each.key && host === each.host).slice(0, 1);
    const chart = plan(own, slots)[0]?.charts[0];
    if (!chart) return { evidence: each, plan: null };
    const title = `${chart.title}: ${each.key}${each.host ? ` on ${each.host}` : ''}`;
    // Its colour is that of the series in other charts; one line needs no heatmap.
    return { evidence: each, plan: { ...chart, id: `evidence ${each.host} ${each.key}`, title, ofDevices: false, patterns: [each.key] } };
  });
}

/** The value that a chart compares with, in the unit of the chart; null if there is none. */
export const normalOf = ({ evidence, plan: chart }: EvidenceChart): number | null => (chart !== null && chart.unit === evidence.unit ? evidence.normal : null);
