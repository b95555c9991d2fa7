// What runs and versions were made from, as a graph: names, collapsing, search and paths.

import type { Lineage, LineageNode } from '../../base/wire';

/** A node as it is drawn: one run or version, or several that are collapsed. */
export interface GraphNode {
  /** The same in each drawing of the graph. */
  id: string;
  kind: 'run' | 'version';
  title: string;
  detail: string;
  generation: number;
  /** The runs and versions that it stands for; more than one if it is collapsed. */
  members: readonly LineageNode[];
  /** It may not be read, or is in the trash. */
  nameless: boolean;
  deleted: boolean;
  moreBefore: boolean;
  moreAfter: boolean;
}

export interface Graph {
  nodes: readonly GraphNode[];
  /** Positions of nodes: which was made from which. */
  edges: readonly (readonly [number, number])[];
}

/** More nodes are shown collapsed at first. */
export const READABLE = 40;

/** The graph of a response. `together`: nodes of a name or group are collapsed, but for those of `apart`, by their ids. */
export function graphOf(lineage: Lineage, together: boolean, apart: ReadonlySet<string> = new Set()): Graph {
  const groups = new Map<string, LineageNode[]>();
  const idOf = lineage.nodes.map((node, at) => {
    const group = together ? groupOf(node) : null;
    const id = group === null || apart.has(group) ? `${keyOf(node) ?? at}` : group;
    groups.set(id, [...(groups.get(id) ?? []), node]);
    return id;
  });
  const ids = [...groups.keys()];
  const place = new Map(ids.map((id, at) => [id, at]));
  const nodes = ids.map((id) => drawn(id, groups.get(id)!));
  const edges = new Map<string, readonly [number, number]>();
  for (const { source, target } of lineage.edges) {
    const edge = [place.get(idOf[source]!)!, place.get(idOf[target]!)!] as const;
    if (edge[0] !== edge[1]) edges.set(edge.join('>'), edge);
  }
  return { nodes, edges: [...edges.values()] };
}

function keyOf({ run, version }: LineageNode): string | null {
  if (run) return ['run', run.entity, run.project, run.run].join('\n');
  return version && ['version', version.entity, version.project, version.name, version.version].join('\n');
}

/** What a node is collapsed by: the collection of versions, the group of runs, each within a generation. */
function groupOf({ run, version, kind, generation }: LineageNode): string | null {
  const shown = run ?? version;
  if (generation === 0) return null;
  if (!shown) return ['hidden', kind, generation].join('\n');
  const name = run ? run.group || run.job_type : version!.name;
  return ['group', kind, shown.entity, shown.project, name, generation].join('\n');
}

function drawn(id: string, members: LineageNode[]): GraphNode {
  const { kind, generation, run, version } = members[0]!;
  const several = members.length > 1;
  return {
    id,
    kind,
    title: titleOf(members),
    detail: several ? `${members.length} ${kind === 'run' ? 'runs' : 'versions'}` : run ? [run.job_type, run.group].filter(Boolean).join(' · ') || 'run'
      : version ? [version.deleted ? 'deleted' : version.type, ...version.aliases].join(' · ') : 'you may not read it, or it is in the trash',
    generation,
    members,
    nameless: run === null && version === null,
    deleted: members.every((member) => member.version?.deleted ?? false),
    moreBefore: members.some(({ more_before }) => more_before),
    moreAfter: members.some(({ more_after }) => more_after),
  };
}

function titleOf(members: LineageNode[]): string {
  const [{ kind, run, version }] = members as [LineageNode];
  if (!run && !version) return kind === 'run' ? 'Some run' : 'Some version';
  if (members.length === 1) return run ? run.name || run.run : `${version!.name}:v${version!.version}`;
  return run ? run.group || run.job_type || `Runs of ${run.project}` : version!.name;
}

/** What one run or version is called. */
export const nameOf = (node: LineageNode): string => titleOf([node]);

/** The nodes with all words of a text in their names, by position. */
export function matching({ nodes }: Graph, text: string): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return nodes.flatMap((node, at) => (words.every((word) => textOf(node).includes(word)) ? [at] : []));
}

const textOf = ({ title, detail, members }: GraphNode): string =>
  [title, detail, ...members.flatMap(({ run, version }) => (run ? [run.name, run.run, run.project] : version ? [nameOf({ run, version } as LineageNode), version.project, ...version.aliases] : []))].join(' ').toLowerCase();

/** What comes directly before and after each node, by position. */
export function neighbours({ nodes, edges }: Graph): { before: number[][]; after: number[][] } {
  const [before, after] = [nodes.map((): number[] => []), nodes.map((): number[] => [])];
  for (const [source, target] of edges) {
    after[source]!.push(target);
    before[target]!.push(source);
  }
  return { before, after };
}

/** The shortest way from one node to another: along the arrows, else against them, else by either; null: there is none. */
export function pathBetween(graph: Graph, from: number, to: number): number[] | null {
  const { before, after } = neighbours(graph);
  const either = graph.nodes.map((_, at) => [...before[at]!, ...after[at]!]);
  return shortest(after, from, to) ?? shortest(before, from, to) ?? shortest(either, from, to);
}

function shortest(steps: readonly number[][], from: number, to: number): number[] | null {
  const cameFrom = new Map([[from, from]]);
  for (const at of cameFrom.keys()) {
    if (at === to) break;
    for (const next of steps[at]!) if (!cameFrom.has(next)) cameFrom.set(next, at);
  }
  if (!cameFrom.has(to)) return null;
  const path = [to];
  while (path[0] !== from) path.unshift(cameFrom.get(path[0]!)!);
  return path;
}

/** How far a generation is from the first node, in words. */
export function stepsText(generation: number): string {
  const steps = Math.abs(generation);
  if (steps === 0) return 'The start';
  return `${steps} ${steps === 1 ? 'step' : 'steps'} ${generation < 0 ? 'before' : 'after'}`;
}
