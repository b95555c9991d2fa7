import { describe, expect, it } from 'vitest';
import { definitionOf, EMPTY_RULE, formOf, limitsOf, ruleText, type RuleDefinition } from './alertRules';

const IDLE: RuleDefinition = {
  name: 'GPU idle',
  severity: 'warning',
  for: '15m',
  tell: ['author', 'slack:3'],
  projects: ['digits', 'faces'],
  maintenance: [
    { days: ['sat'], from: '22:00', to: '06:00', zone: 'Europe/Berlin' },
    { from_ms: 1_700_000_000_000 - (1_700_000_000_000 % 60_000), to_ms: 1_700_000_040_000 },
  ],
  condition: { kind: 'threshold', metric: 'gpu.*.gpu', statistic: 'mean', window: '1m', operator: '<', value: 5, clear: 10 },
};

describe('the form of a rule', () => {
  it('keeps everything of a rule', () => {
    const again = definitionOf(formOf(IDLE));
    expect({ ...again, maintenance: null }).toEqual({ ...IDLE, maintenance: null });
    expect((again.maintenance as unknown[])[0]).toEqual((IDLE.maintenance as unknown[])[0]);
    expect((again.maintenance as { from_ms: number }[])[1]!.from_ms).toBe((IDLE.maintenance as { from_ms: number }[])[1]!.from_ms);
  });

  it.each([
    [{ kind: 'change', metric: 'loss', window: '10m', baseline: '1h', by: 20, direction: 'up', relative: true }, 'loss changes up by 20 % for 90s'],
    [{ kind: 'spread', metric: 'gpu.*.powerWatts', window: '2m', by: 15, clear: 8, direction: 'down' }, 'gpu.*.powerWatts is 15 % down off the median of the run for 90s'],
    [{ kind: 'silence', of: 'rank' }, 'a rank logs nothing while others do for 90s'],
    [{ kind: 'silence', of: 'steps', busy_metric: 'gpu.*.gpu', busy_value: 94 }, 'no step is logged for 90s while gpu.*.gpu > 94'],
    [{ kind: 'silence', of: 'host' }, 'nothing is heard of a host for 90s'],
    [{ kind: 'not_finite', metric: '*loss*' }, '*loss* is not a number'],
    [{ kind: 'finding', findings: ['hang', 'idle'], severity: 'critical' }, 'finding hang or idle, critical or worse for 90s'],
    [{ kind: 'finding', severity: 'warning' }, 'finding of any kind, warning or worse for 90s'],
  ])('keeps a condition and says it: %o', (condition, text) => {
    const rule = { name: 'a', severity: 'error', for: 90, condition } as RuleDefinition;
    expect(definitionOf(formOf(rule))).toEqual({ ...rule, for: '90s' });
    expect(ruleText(rule)).toBe(text);
  });

  it('says a threshold, and which limits a chart shows', () => {
    expect(ruleText(IDLE)).toBe('mean in 1m of gpu.*.gpu < 5 for 15m');
    expect(limitsOf(formOf(IDLE))).toEqual([5, 10]);
    expect(limitsOf({ ...EMPTY_RULE, value: 'many' })).toEqual([]);
  });

  it('leaves what is no number as it was typed', () => {
    expect(definitionOf({ ...EMPTY_RULE, metric: 'loss', value: 'many' }).condition.value).toBe('many');
  });
});
