import { expect, it } from 'vitest';
import { addPanel, EMPTY, newPanel, PANEL_KINDS, type Layout, type LayoutPanel } from './layout';
import { layoutData, layoutOf, layoutOfText, LayoutProblem, layoutText, MAX_BYTES } from './layoutFile';

const HOSTILE = '</script><img src=x onerror=alert(1)>\u202e"\\\u0000';

const panels: LayoutPanel[] = [
  ...PANEL_KINDS.map((kind) => ({ ...newPanel(kind), metrics: ['loss', 'gpu.0.powerWatts / gpu.0.gpu'] })),
  { ...newPanel('scatter'), across: 'a + b', points: true, y: 'log', scope: 'devices', statistic: 'max' },
  { ...newPanel('line'), title: HOSTILE, x: 'metric:epoch', smoothing: { kind: 'ema', share: 2 }, columns: 12, rows: 9 },
  { ...newPanel('percentile'), percentiles: [1, 99.5], pattern: '^loss', each: true },
  { ...newPanel('text'), text: HOSTILE },
];
const layout: Layout = panels.reduce<Layout>((all, panel) => addPanel(all, panel), EMPTY);

it('a layout comes back from a file as it was', () => {
  expect(layoutOfText(layoutText(layout))).toEqual(layout);
  expect(layoutOf(layoutData(EMPTY))).toEqual(EMPTY);
});

it('a file has nothing that every panel has', () => {
  const data = JSON.parse(layoutText(addPanel(EMPTY, { ...newPanel(), id: 'a', metrics: ['loss'] })));
  expect(data.sections[0].panels).toEqual([{ id: 'a', kind: 'line', columns: 4, rows: 4, metrics: ['loss'] }]);
});

const withPanel = (panel: object): object => ({ version: 1, sections: [{ id: 's', panels: [{ id: 'a', kind: 'line', ...panel }] }] });

it.each([
  ['nothing', null, 'layout: expected an object, got null'],
  ['a list', [], 'layout: expected an object, got []'],
  ['a later version', { version: 2, sections: [] }, 'from a later version'],
  ['sections that are no list', { sections: {} }, 'layout.sections: expected a list'],
  ['an unknown kind', withPanel({ kind: 'iframe' }), 'layout.sections[0].panels[0].kind: expected line, bar'],
  ['a huge panel', withPanel({ columns: 1e9 }), 'columns: expected a whole number from 2 to 12, got 1000000000'],
  ['half a column', withPanel({ columns: 2.5 }), 'columns: expected a whole number'],
  ['text as a metric list', withPanel({ metrics: 'loss' }), 'metrics: expected at most 50 texts'],
  ['too long an expression', withPanel({ metrics: ['a'.repeat(501)] }), 'metrics: expected at most 50 texts'],
  ['a foreign x', withPanel({ x: 'metric:' }), 'x: expected step, relative, wall or metric:NAME'],
  ['a percentile above all', withPanel({ percentiles: [101] }), 'percentiles: expected at most 11 numbers from 0 to 100'],
  ['a dangerous id', withPanel({ id: '"] , *[x="' }), 'id: expected 1 to 16 small letters and digits'],
  ['an id twice', { sections: [{ id: 's', panels: [{ id: 's', kind: 'line' }] }] }, 'an id that nothing else in the layout has'],
  ['too many panels', { sections: ['s', 't'].map((id) => ({ id, panels: Array.from({ length: 101 }, (_, i) => ({ id: `${id}${i}`, kind: 'line' })) })) }, '202 panels; expected at most 200'],
  ['a flag that is none', withPanel({ each: 'yes' }), 'each: expected true or false'],
])('a file with %s is refused', (_, data, message) => {
  expect(() => layoutOf(data)).toThrow(LayoutProblem);
  expect(() => layoutOf(data)).toThrow(message);
});

it('percentiles are those that differ', () => {
  expect(layoutOf(withPanel({ kind: 'percentile', percentiles: [5, 5, 50] })).sections[0]!.panels[0]!.percentiles).toEqual([5, 50]);
});

it('what is not JSON, or too much of it, is refused', () => {
  expect(() => layoutOfText('{')).toThrow('This is not JSON.');
  expect(() => layoutOfText(`"${'x'.repeat(MAX_BYTES)}"`)).toThrow('at most 256 KiB');
});

it('names of the language itself are only names', () => {
  const layout = layoutOfText('{"sections": [{"id": "s", "panels": [{"id": "a", "kind": "line", "__proto__": {"text": "x"}}]}], "constructor": 1}');
  expect(layout.sections[0]!.panels[0]!.text).toBe('');
});
