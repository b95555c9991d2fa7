// New panels, as the list of `/` inserts them.

import { newPanel } from '../workspace/panels/layout';
import { settingsOf } from './reportPanel';
import { newId } from '../../base/ids';
import { newRunSet, type ReportPanel, type ReportPanels } from './reports';

type Kind = ReportPanel['kind'];

/** What `/` offers. */
export const PANEL_CHOICES: readonly { title: string; kind: Kind }[] = [
  { title: 'Chart of runs', kind: 'line' },
  { title: 'Bars of runs', kind: 'bar' },
  { title: 'Scatter plot of runs', kind: 'scatter' },
  { title: 'Table of runs', kind: 'table' },
  { title: 'Number of runs', kind: 'scalar' },
  { title: 'Media of runs', kind: 'media' },
  { title: 'System charts of runs', kind: 'system' },
  { title: 'Findings of runs', kind: 'findings' },
  { title: 'Importance of parameters', kind: 'importance' },
  { title: 'Parallel coordinates', kind: 'parallel' },
  { title: 'Differing configuration', kind: 'config_diff' },
  { title: 'Differing code', kind: 'code_diff' },
  { title: 'Output of a run', kind: 'console' },
];

const WIDE: readonly Kind[] = ['parallel', 'config_diff', 'code_diff', 'console', 'findings', 'media'];
/** What shows something without a metric that the user names. */
const SYSTEM_USAGE = ['gpu.*.gpu', 'cpu'];

/** A panel of a kind, over all run sets of its block. */
export function panelOfKind(kind: Kind, runSets: readonly string[]): ReportPanel {
  const layout = newPanel(kind === 'bar' || kind === 'scatter' || kind === 'table' || kind === 'scalar' ? kind : 'line');
  const names = kind === 'system' ? SYSTEM_USAGE : [];
  return {
    id: newId(),
    kind,
    title: '',
    columns: WIDE.includes(kind) ? 12 : layout.kind === 'scalar' ? 3 : 6,
    rows: layout.kind === 'scalar' ? 3 : 5,
    run_sets: [...runSets],
    settings: settingsOf({ ...layout, metrics: names.map((name) => `system:"${name}"`), x: kind === 'system' ? 'relative' : layout.x }),
    queries: names.map((name) => ({ source: 'system', name, pattern: null })),
    zoom: null,
    frozen_ms: null,
  };
}

/** A block with one panel of all runs of a project. */
export function newPanels(entity: string, project: string, kind: Kind): ReportPanels {
  const runSet = newRunSet(entity, project);
  return { id: newId(), kind: 'panels', run_sets: [runSet], panels: [panelOfKind(kind, [runSet.id])] };
}
