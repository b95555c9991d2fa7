// The runs that panels show, their values, and the part of an axis that is zoomed to.

import type { Params } from '../../../base/api';
import type { Range } from '../../../chart/points';
import type { GroupMeansData } from '../groupMeans.svelte';
import type { OverlayData } from '../overlayData.svelte';
import type { PanelX } from '../panel';
import type { OverlayRun } from '../../../base/wire';

export interface ShownRuns {
  data: OverlayData;
  runs: readonly OverlayRun[];
  /** The filter of all runs that match, of which `runs` are some: for panels that the server computes. */
  params: Params;
  /** Draw a line of each group of all runs that match instead; null: of each run. */
  means: GroupMeansData | null;
  zoom: { x: PanelX; range: Range } | null;
  /** null: show everything again. */
  onzoom: (range: Range | null, x: PanelX) => void;
}
