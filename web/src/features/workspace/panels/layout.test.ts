import { describe, expect, it } from 'vitest';
import {
  addPanel,
  addSection,
  allPanels,
  changeSection,
  clampSize,
  EMPTY,
  MAX_PANELS,
  movePanel,
  moveSection,
  newPanel,
  placeOf,
  removePanel,
  removeSection,
  stepPanel,
  type Layout,
} from './layout';
import { LayoutHistory } from './layoutHistory.svelte';

const panel = (id: string) => ({ ...newPanel(), id });
const section = (id: string, ...ids: string[]) => ({ id, title: id, folded: false, panels: ids.map(panel) });
const layout: Layout = { sections: [section('one', 'a', 'b', 'c'), section('two', 'd'), section('three')] };

const shape = ({ sections }: Layout): string => sections.map(({ id, panels }) => `${id}:${panels.map((panel) => panel.id).join('')}`).join(' ');

it('panels are added to their section, to the last one, or to a new one', () => {
  expect(shape(addPanel(layout, panel('x'), 'one'))).toBe('one:abcx two:d three:');
  expect(shape(addPanel(layout, panel('x')))).toBe('one:abc two:d three:x');
  expect(shape(addPanel(EMPTY, panel('x')))).toMatch(/^\w{8}:x$/);
  expect(addPanel(changeSection(layout, 'one', { folded: true }), panel('x'), 'one').sections[0]!.folded).toBe(false);
});

it('a full layout takes no more', () => {
  let full: Layout = EMPTY;
  for (let i = 0; i < MAX_PANELS + 5; i++) full = addPanel(full, newPanel());
  expect(allPanels(full)).toHaveLength(MAX_PANELS);
  for (let i = 0; i < 60; i++) full = addSection(full, `${i}`);
  expect(full.sections).toHaveLength(50);
});

it.each([
  ['a', 'one', 1, 'one:bac two:d three:'],
  ['a', 'one', 2, 'one:bca two:d three:'],
  ['c', 'one', 0, 'one:cab two:d three:'],
  ['a', 'two', 0, 'one:bc two:ad three:'],
  ['a', 'three', 9, 'one:bc two:d three:a'],
  ['a', 'nowhere', 0, 'one:abc two:d three:'],
  ['nothing', 'one', 0, 'one:abc two:d three:'],
])('%s moved to %s, %d', (id, to, index, expected) => {
  expect(shape(movePanel(layout, id, { section: to, index }))).toBe(expected);
});

it('a panel steps through its section, and into the next one', () => {
  let moved = layout;
  const seen = ['b', 'b', 'b', 'b', 'b'].map((id) => ((moved = stepPanel(moved, id, 1)), shape(moved)));
  expect(seen).toEqual(['one:acb two:d three:', 'one:ac two:bd three:', 'one:ac two:db three:', 'one:ac two:d three:b', 'one:ac two:d three:b']);
  expect(shape(stepPanel(layout, 'd', -1))).toBe('one:abcd two: three:');
  expect(stepPanel(layout, 'a', -1)).toBe(layout);
});

it('sections move and go', () => {
  expect(shape(moveSection(layout, 'three', -1))).toBe('one:abc three: two:d');
  expect(moveSection(layout, 'one', -1)).toBe(layout);
  expect(shape(removeSection(layout, 'one'))).toBe('two:d three:');
  expect(shape(removePanel(layout, 'b'))).toBe('one:ac two:d three:');
  expect(placeOf(layout, 'c')).toEqual({ section: 'one', index: 2 });
});

it('a size stays within the grid', () => {
  expect(clampSize(0, 99)).toEqual({ columns: 2, rows: 16 });
  expect(clampSize(4.6, 3.2)).toEqual({ columns: 5, rows: 3 });
});

describe('undo', () => {
  it('goes back, and on again until something else is done', () => {
    let changes = 0;
    const history = new LayoutHistory(layout, () => (changes += 1));
    history.change(removePanel(layout, 'a'));
    history.change(removePanel(history.layout, 'b'));
    expect(shape(history.layout)).toBe('one:c two:d three:');
    history.undo();
    history.undo();
    expect(history.layout).toBe(layout);
    history.undo();
    history.redo();
    expect(shape(history.layout)).toBe('one:bc two:d three:');
    history.change(addSection(history.layout, 'four'));
    history.redo();
    expect(history.layout.sections).toHaveLength(4);
    expect(changes).toBe(6);
  });

  it('has nothing to undo where nothing changed, or another layout was loaded', () => {
    const history = new LayoutHistory(layout);
    history.change(moveSection(layout, 'one', -1));
    history.undo();
    history.change(removePanel(layout, 'a'));
    history.reset(EMPTY);
    history.undo();
    expect(history.layout).toBe(EMPTY);
  });
});
