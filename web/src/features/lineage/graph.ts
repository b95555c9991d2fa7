// What runs and versions were made from, as a graph: names, collapsing, search and paths.

import type { Lineage, LineageNode } from '../../base/wire';

/** What nodes of a kind are called. */
export const KINDS: Record<LineageNode['kind'], readonly [one: string, several: string]> = {
  run: ['run', 'runs'],
  version: ['version', 'versions'],
  dataset: ['dataset', 'datasets'],
  model: ['logged model', 'logged models'],
};

/** A node as it is drawn: one run, version, dataset or logged model, or several that are collapsed. */
export interface GraphNode {
  /** The same in each drawing of the graph. */
  id: string;
  kind: LineageNode['kind'];
  title: string;
  detail: string;
  generation: number;
  /** What it stands for; more than one if it is collapsed. */
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
  const indexOf = new Map(ids.map((id, at) => [id, at]));
  const nodes = ids.map((id) => drawn(id, groups.get(id)!));
  const edges = new Map<string, readonly [number, number]>();
  for (const { source, target } of lineage.edges) {
    const edge = [indexOf.get(idOf[source]!)!, indexOf.get(idOf[target]!)!] as const;
    if (edge[0] !== edge[1]) edges.set(edge.join('>'), edge);
  }
  return { nodes, edges: [...edges.values()] };
}

function keyOf({ kind, run, version, dataset, model }: LineageNode): string | null {
  const item = run ?? version ?? dataset ?? model;
  if (!item) return null;
  const own = run ? [run.run] : version ? [version.name, version.version] : dataset ? [dataset.name, dataset.digest] : [model!.model_id];
  return [kind, item.entity, item.project, ...own].join('\n');
}

/** What a node is collapsed by: its name, or the group of a run, each within a generation. */
function groupOf({ run, version, dataset, model, kind, generation }: LineageNode): string | null {
  const item = run ?? version ?? dataset ?? model;
  if (generation === 0) return null;
  if (!item) return ['hidden', kind, generation].join('\n');
  return ['group', kind, item.entity, item.project, run ? run.group || run.job_type : item.name, generation].join('\n');
}

function drawn(id: string, members: LineageNode[]): GraphNode {
  const { kind, generation } = members[0]!;
  return {
    id,
    kind,
    title: titleOf(members),
    detail: members.length > 1 ? `${members.length} ${KINDS[kind][1]}` : detailOf(members[0]!),
    generation,
    members,
    nameless: isNameless(members[0]!),
    deleted: members.every((member) => member.version?.deleted ?? false),
    moreBefore: members.some(({ more_before }) => more_before),
    moreAfter: members.some(({ more_after }) => more_after),
  };
}

const isNameless = ({ run, version, dataset, model }: LineageNode): boolean => !(run ?? version ?? dataset ?? model);

function detailOf({ run, version, dataset, model }: LineageNode): string {
  if (run) return [run.job_type, run.group].filter(Boolean).join(' · ') || 'run';
  if (version) return [version.deleted ? 'deleted' : version.type, ...version.aliases].join(' · ');
  if (dataset) return `dataset · ${dataset.digest}`;
  return model ? ['logged model', model.type].filter(Boolean).join(' · ') : 'you may not read it, or it is in the trash';
}

function titleOf(members: LineageNode[]): string {
  const [{ kind, run, version, dataset, model }] = members as [LineageNode];
  if (run) return members.length === 1 ? run.name || run.run : run.group || run.job_type || `Runs of ${run.project}`;
  if (version) return members.length === 1 ? `${version.name}:v${version.version}` : version.name;
  return (dataset ?? model)?.name ?? `Some ${KINDS[kind][0]}`;
}

/** What one node is called. */
export const nameOf = (node: LineageNode): string => titleOf([node]);

/** The nodes with all words of a text in their names, by position. */
export function matching({ nodes }: Graph, text: string): number[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return nodes.flatMap((node, at) => (words.every((word) => textOf(node).includes(word)) ? [at] : []));
}

const textOf = ({ title, detail, members }: GraphNode): string => [title, detail, ...members.flatMap(wordsOf)].join(' ').toLowerCase();

function wordsOf(node: LineageNode): string[] {
  const { run, version, dataset, model } = node;
  if (run) return [run.name, run.run, run.project];
  if (version) return [nameOf(node), version.project, ...version.aliases];
  return dataset ? [dataset.digest, dataset.project] : model ? [model.model_id, model.project] : [];
}

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

/** What a graph consists of, in words: `2 runs and 1 version`. */
export function contentText(nodes: readonly Pick<LineageNode, 'kind'>[]): string {
  const parts = Object.entries(KINDS).flatMap(([kind, [singular, several]]) => {
    const count = nodes.filter((node) => node.kind === kind).length;
    return count === 0 ? [] : [`${count} ${count === 1 ? singular : several}`];
  });
  return new Intl.ListFormat('en').format(parts);
}
