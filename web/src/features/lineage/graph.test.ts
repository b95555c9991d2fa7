import { describe, expect, it } from 'vitest';
import { contentText, graphOf, matching, nameOf, pathBetween, stepsText } from './graph';
import { layoutOf, nearestTo } from './layout';
import { graphSvg } from './picture';
import type { Lineage, LineageNode } from '../../base/wire';

const nothing = { run: null, version: null, dataset: null, model: null, more_before: false, more_after: false };
const run = (id: string, generation: number, group = ''): LineageNode => ({
  ...nothing,
  kind: 'run',
  generation,
  run: { entity: 'vision', project: 'digits', run: id, name: '', group, job_type: '', started_ms: 1 },
});
const version = (name: string, number: number, generation: number): LineageNode => ({
  ...nothing,
  kind: 'version',
  generation,
  version: { entity: 'vision', project: 'digits', name, version: number, aliases: ['best'], type: 'model', bytes: 1, created_ms: 1, deleted: false, links: [] },
  more_after: true,
});
const hidden: LineageNode = { ...nothing, kind: 'run', generation: 1 };
const project = { entity: 'vision', project: 'digits' };
const dataset: LineageNode = { ...nothing, kind: 'dataset', generation: -1, dataset: { ...project, id: 4, name: 'rows', digest: '3328', source_type: 'code', source: '{}' } };
const model: LineageNode = { ...nothing, kind: 'model', generation: 1, model: { ...project, name: 'net', model_id: 'm-1', type: null, created_ms: 1 } };

/** A data set that `count` runs of a group used, each of which made a version. */
function wide(count: number): Lineage {
  const nodes = [version('data', 0, 0)];
  const edges = [];
  for (let i = 0; i < count; i++) {
    const at = nodes.push(run(`r${i}`, 1, 'search'), version('model', i, 2)) - 2;
    edges.push({ source: 0, target: at }, { source: at, target: at + 1 });
  }
  return { nodes, edges, truncated: false };
}

describe('the graph', () => {
  it('collapses versions of a name and runs of a group, until they are shown apart', () => {
    const lineage = wide(150);
    expect(graphOf(lineage, false).nodes).toHaveLength(301);
    const graph = graphOf(lineage, true);
    expect(graph.nodes.map(({ title, detail }) => [title, detail])).toEqual([['data:v0', 'model · best'], ['search', '150 runs'], ['model', '150 versions']]);
    expect(graph.edges).toEqual([[0, 1], [1, 2]]);
    expect(graphOf(lineage, true, new Set([graph.nodes[1]!.id])).nodes).toHaveLength(152);
  });

  it('names what may not be read by its kind only', () => {
    const graph = graphOf({ nodes: [version('data', 0, 0), hidden], edges: [{ source: 0, target: 1 }], truncated: false }, false);
    expect([graph.nodes[1]!.title, graph.nodes[1]!.nameless]).toEqual(['Some run', true]);
  });

  it('names datasets and logged models', () => {
    const { nodes } = graphOf({ nodes: [run('r0', 0), dataset, model], edges: [], truncated: false }, true);
    expect(nodes.map(({ title, detail }) => [title, detail])).toEqual([['r0', 'run'], ['rows', 'dataset · 3328'], ['net', 'logged model']]);
    expect(matching({ nodes, edges: [] }, 'm-1')).toEqual([2]);
    expect(contentText([run('r0', 0), run('r1', 0), dataset, model])).toBe('2 runs, 1 dataset, and 1 logged model');
  });

  it('finds words in names, of collapsed nodes too', () => {
    const graph = graphOf(wide(3), true);
    expect(matching(graph, 'MODEL v2')).toEqual([2]);
    expect(matching(graph, 'r1')).toEqual([1]);
    expect(matching(graph, ' ')).toEqual([]);
    expect(matching(graph, 'none')).toEqual([]);
  });

  it('finds the shortest path, along the arrows first', () => {
    const graph = graphOf(wide(2), false);
    const names = (path: number[] | null): string[] | undefined => path?.map((at) => nameOf(graph.nodes[at]!.members[0]!));
    expect(names(pathBetween(graph, 0, 4))).toEqual(['data:v0', 'r1', 'model:v1']);
    expect(names(pathBetween(graph, 4, 0))).toEqual(['model:v1', 'r1', 'data:v0']);
    expect(names(pathBetween(graph, 2, 4))).toEqual(['model:v0', 'r0', 'data:v0', 'r1', 'model:v1']);
    expect(pathBetween({ nodes: graph.nodes, edges: [] }, 0, 1)).toBeNull();
    expect(pathBetween(graph, 1, 1)).toEqual([1]);
  });

  it('says how far a generation is', () => {
    expect([-2, -1, 0, 1].map(stepsText)).toEqual(['2 steps before', '1 step before', 'The start', '1 step after']);
  });
});

describe('the drawing', () => {
  it('has layers from left to right, also of a circle', () => {
    const graph = graphOf(wide(2), false);
    const layout = layoutOf(graph);
    const [data, first, output] = layout.places;
    expect(data!.x < first!.x && first!.x < output!.x).toBe(true);
    expect(layout.lines[0]).toMatch(/^M[\d.]+ [\d.]+C/);
    expect(nearestTo(layout.places, 0, 1, 0)).not.toBeNull();
    expect(nearestTo(layout.places, 0, -1, 0)).toBeNull();
    expect(layoutOf({ nodes: graph.nodes.slice(0, 2), edges: [[0, 1], [1, 0]] }).lines).toHaveLength(2);
    expect(layoutOf({ nodes: graph.nodes.slice(0, 1), edges: [] }).places).toHaveLength(1);
  });

  it('is an SVG document, in which names are text', () => {
    const graph = graphOf({ nodes: [version('<script>&', 0, 0)], edges: [], truncated: false }, false);
    const colors = { background: '#fff', text: '#000', soft: '#555', grid: '#eee', warning: '#aa0', error: '#a00' };
    const svg = graphSvg(graph, layoutOf(graph), colors);
    expect(svg).toContain('&#60;script&#62;&#38;:v0');
    expect(svg).not.toContain('<script');
  });
});
