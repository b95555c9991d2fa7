import { describe, expect, it } from 'vitest';
import {
  chartOptionChanges,
  chartState,
  optionChanges,
  pageOptions,
  seriesChanges,
  zoomChanges,
  zoomOf,
  type Changes,
} from './viewState';

function changed(query: URLSearchParams, changes: Changes): URLSearchParams {
  const after = new URLSearchParams(query.toString());
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) after.delete(name);
    else after.set(name, value);
  }
  return new URLSearchParams(after.toString()); // through an address
}

const nothing = new URLSearchParams();
const HOSTILE = 'a&hide=b~\n%2C"<script>\u202e,;=';

describe('options in an address', () => {
  it('are the defaults where it says nothing, or nonsense', () => {
    const defaults = { y: 'auto', smoothing: null, outliersAside: false, mode: null };
    expect(pageOptions(nothing)).toEqual(defaults);
    const nonsense = new URLSearchParams('y=cubic&smooth=ema:NaN&outliers=1&mode=3d');
    expect(pageOptions(nonsense)).toEqual(defaults);
    expect(pageOptions(new URLSearchParams('smooth=ema:1e9'))).toEqual(defaults);
  });

  it('come back as they were set', () => {
    const options = { y: 'log', smoothing: { kind: 'gaussian', share: 2.5 }, outliersAside: true, mode: 'band' } as const;
    expect(pageOptions(changed(nothing, optionChanges(options)))).toEqual(options);
    const reset = { y: 'auto', smoothing: null, outliersAside: false, mode: null } as const;
    expect(changed(changed(nothing, optionChanges(options)), optionChanges(reset)).toString()).toBe('');
  });

  it('of one chart win over those of all, until they are taken back', () => {
    let query = changed(nothing, optionChanges({ y: 'log', outliersAside: true }));
    query = changed(query, chartOptionChanges(query, 'GPU power\nW', { y: 'auto' }));
    expect(chartState(query, 'GPU power\nW').options).toMatchObject({ y: 'auto', outliersAside: true });
    expect(chartState(query, 'GPU power\nW').own).toBe(true);
    expect(chartState(query, 'CPU\n%').options.y).toBe('log');
    query = changed(query, chartOptionChanges(query, 'GPU power\nW', null));
    expect(chartState(query, 'GPU power\nW').options.y).toBe('log');
  });
});

it('options that a chart has of its own count where the address has none', () => {
  const preset = { y: 'log', smoothing: { kind: 'ema', share: 2 } } as const;
  expect(chartState(nothing, 'panel', preset).options).toMatchObject(preset);
  expect(chartState(new URLSearchParams('y=linear'), 'panel', preset).options).toMatchObject({ ...preset, y: 'linear' });
  const query = changed(nothing, chartOptionChanges(nothing, 'panel', { y: 'auto', smoothing: null }));
  expect(chartState(query, 'panel', preset).options).toMatchObject({ y: 'auto', smoothing: null });
  const cleared = changed(nothing, chartOptionChanges(query, 'panel', null));
  expect(chartState(cleared, 'panel', preset).own).toBe(false);
});

it('hidden and pinned series come back, whatever their names', () => {
  let query = changed(nothing, seriesChanges(nothing, HOSTILE, 'hide', [HOSTILE, 'b']));
  query = changed(query, seriesChanges(query, HOSTILE, 'pin', ['c']));
  const state = chartState(query, HOSTILE);
  expect([...state.hidden]).toEqual([HOSTILE, 'b']);
  expect([...state.pinned]).toEqual(['c']);
  query = changed(query, seriesChanges(query, HOSTILE, 'hide', []));
  query = changed(query, seriesChanges(query, HOSTILE, 'pin', []));
  expect(query.toString()).toBe('');
});

describe('the zoom in an address', () => {
  it.each([
    [{ min: 1795256141280, max: 1795256142280.4 }, { min: 1795256141280, max: 1795256142280 }],
    [{ min: 0.1, max: 0.25 }, { min: 0.1, max: 0.25 }],
    [{ min: -3, max: 99999 }, { min: -3, max: 99999 }],
  ])('%j', (zoom, expected) => {
    expect(zoomOf(changed(nothing, zoomChanges(zoom)))).toEqual(expected);
  });

  it.each(['', 'from=1', 'from=2&to=1', 'from=x&to=y', 'from=1&to=Infinity', 'from=-1e300&to=1'])('is nothing in “%s”', (text) => {
    expect(zoomOf(new URLSearchParams(text))).toBeNull();
  });
});
