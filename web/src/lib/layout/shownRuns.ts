// The runs that panels show, their values, and the part of an axis that is zoomed to.

import type { OverlayRun } from '../overlay/overlay';
import type { OverlayData } from '../overlay/overlayData.svelte';
import type { PanelX } from '../panels';
import type { Range } from '../runData.svelte';

export interface ShownRuns {
  data: OverlayData;
  runs: readonly OverlayRun[];
  zoom: { x: PanelX; range: Range } | null;
  /** null: show everything again. */
  onzoom: (range: Range | null, x: PanelX) => void;
}
