// The runs that panels show, their values, and the part of an axis that is zoomed to.

import type { Range } from '../../../chart/points';
import type { OverlayData } from '../overlayData.svelte';
import type { PanelX } from '../panel';
import type { OverlayRun } from '../../../base/wire';

export interface ShownRuns {
  data: OverlayData;
  runs: readonly OverlayRun[];
  zoom: { x: PanelX; range: Range } | null;
  /** null: show everything again. */
  onzoom: (range: Range | null, x: PanelX) => void;
}
