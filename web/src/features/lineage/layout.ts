// Where the nodes of a graph are drawn: in layers from left to right, by dagre.

import { Graph as DagreGraph, layout } from '@dagrejs/dagre';
import type { Graph } from './graph';

export interface Point {
  x: number;
  y: number;
}

export interface Layout {
  width: number;
  height: number;
  /** The middle of each node. */
  places: readonly Point[];
  /** The path of each edge. */
  lines: readonly string[];
}

export const NODE_WIDTH = 190;
export const NODE_HEIGHT = 44;
const MARGIN = 24;

/** The places of all nodes. 300 nodes take about 0.1 s. `down`: layers from top to bottom, for a narrow page. */
export function layoutOf({ nodes, edges }: Graph, down = false): Layout {
  const drawn = new DagreGraph();
  // `tight-tree` takes half the time of the usual `network-simplex`, for edges that are hardly longer.
  drawn.setGraph({ rankdir: down ? 'TB' : 'LR', ranker: 'tight-tree', nodesep: 14, ranksep: down ? 36 : 64, marginx: MARGIN, marginy: MARGIN });
  drawn.setDefaultEdgeLabel(() => ({}));
  nodes.forEach((_, at) => drawn.setNode(`${at}`, { width: NODE_WIDTH, height: NODE_HEIGHT }));
  for (const [source, target] of edges) drawn.setEdge(`${source}`, `${target}`);
  layout(drawn);
  const { width = 0, height = 0 } = drawn.graph() as { width?: number; height?: number };
  const nodePoints = nodes.map((_, at) => drawn.node(`${at}`) as Point);
  const lines = edges.map(([source, target]) => {
    const { points } = drawn.edge(`${source}`, `${target}`) as { points: Point[] };
    return down ? curveDown(points) : curve(fromSideToSide(points, nodePoints[source]!, nodePoints[target]!));
  });
  return { width, height, places: nodePoints, lines };
}

/** An edge to the right leaves in the middle of a side, however many there are. */
function fromSideToSide(points: readonly Point[], source: Point, target: Point): readonly Point[] {
  if (target.x - source.x < NODE_WIDTH) return points;
  return [{ x: source.x + NODE_WIDTH / 2, y: source.y }, ...points.slice(1, -1), { x: target.x - NODE_WIDTH / 2, y: target.y }];
}

/** A curve that leaves and reaches each point horizontally. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points as [Point, ...Point[]];
  let last = first;
  let path = `M${round(first.x)} ${round(first.y)}`;
  for (const point of rest) {
    const middle = round((last.x + point.x) / 2);
    path += `C${middle} ${round(last.y)} ${middle} ${round(point.y)} ${round(point.x)} ${round(point.y)}`;
    last = point;
  }
  return path;
}

/** The same, vertically. */
const curveDown = (points: readonly Point[]): string => curve(points.map(({ x, y }) => ({ x: y, y: x }))).replace(/([\d.-]+) ([\d.-]+)/g, '$2 $1');

const round = (value: number): number => Math.round(value * 10) / 10;

/** The nearest node in a direction: -1 or 1 along x or y. null: there is none. */
export function nearestTo(points: readonly Point[], from: number, dx: number, dy: number): number | null {
  const start = points[from]!;
  let [nearest, least] = [null as number | null, Infinity];
  points.forEach(({ x, y }, at) => {
    const along = (x - start.x) * dx + (y - start.y) * dy;
    if (at === from || along < 1) return;
    const aside = Math.abs((x - start.x) * dy) + Math.abs((y - start.y) * dx);
    const distance = along + 3 * aside;
    if (distance < least) [nearest, least] = [at, distance];
  });
  return nearest;
}
