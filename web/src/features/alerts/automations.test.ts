import { expect, test } from 'vitest';
import { actionsText, bodyOf, EMPTY, eventText, formOf, type Automation, type Form } from './automations';

const automation = (form: Partial<Form>): Automation => ({
  ...(bodyOf({ ...EMPTY, ...form }) as unknown as Automation),
  id: 1,
  enabled: true,
  created_by: 'ada',
  created_ms: 0,
  changed_ms: 0,
  problem: null,
});

test('a form becomes an automation and back', () => {
  const forms: Partial<Form>[] = [
    { name: 'told', slack: ['3'], members: ['ada', 'bob'], projects: 'digits, mnist', stop: true, add_tag: 'seen' },
    { name: 'spike', kind: 'metric.threshold', metric: 'loss', value: '10', window: '5', statistic: 'mean', webhooks: ['7'], payload: '{}', states: [] },
    { name: 'change', kind: 'metric.change', metric: 'loss', amount: '0.5', window: '2', before: '4', relative: false, direction: 'up', states: [], slack: ['1'] },
    { name: 'hangs', kind: 'finding.opened', findings: 'hang, idle', severity: 'critical', states: [], stop: true, slack: ['1'] },
    { name: 'over', kind: 'finding.closed', states: [], slack: ['1'] },
    { name: 'alias', kind: 'artifact.alias', alias: '^production$', collection: 'mnist', states: [], slack: ['1'] },
  ];
  for (const form of forms) expect(formOf(automation(form))).toEqual({ ...EMPTY, ...form });
});

test('what is no number is left to the server', () => {
  expect(bodyOf({ ...EMPTY, kind: 'metric.threshold', metric: 'loss', value: 'ten', window: '' }).event).toEqual({
    kind: 'metric.threshold',
    metric: 'loss',
    value: 'ten',
    comparison: '>',
    statistic: 'last',
  });
});

test('only an automation about runs stops or tags one', () => {
  const form = { ...EMPTY, kind: 'artifact.version' as const, stop: true, add_tag: 'seen', slack: ['1'] };
  expect(bodyOf(form).actions).toEqual([{ kind: 'slack', destination: 1 }]);
});

test('events and actions in words', () => {
  expect(eventText(automation({}).event)).toBe('A run is failed or crashed');
  expect(eventText({ kind: 'metric.threshold', metric: 'loss', statistic: 'mean', window: 5, comparison: '>', value: 10 })).toBe('mean of the last 5 of loss > 10');
  expect(eventText({ kind: 'metric.change', metric: 'loss', relative: true, amount: 0.2 })).toBe('loss changes by 20 %');
  expect(eventText({ kind: 'artifact.alias', alias: 'production', collection: '' })).toBe('A version gets an alias like production');
  expect(eventText({ kind: 'finding.opened', findings: ['hang', 'idle'], severity: 'critical' })).toBe('Finding hang or idle, critical or worse, opens');
  expect(eventText({ kind: 'finding.closed', findings: [], severity: 'warning' })).toBe('Finding of any kind, warning or worse, closes');
  expect(actionsText(automation({ slack: ['1', '2'], stop: true }).actions)).toBe('Slack, stop the run');
});

test('what the form has no field for stays when an automation is edited', () => {
  const payloads = [
    { kind: 'webhook', webhook: 7, payload: '{"a": 1}' },
    { kind: 'webhook', webhook: 8, payload: null },
  ];
  const edited = { ...automation({}), event: { kind: 'artifact.version', type: 'model', collection: 'm' }, actions: [...payloads, { kind: 'apprise', destination: 4 }] };
  const body = bodyOf({ ...formOf(edited), collection: 'n' }, edited);
  expect(body.event).toEqual({ kind: 'artifact.version', type: 'model', collection: 'n' });
  expect(body.actions).toEqual(edited.actions);
  expect(bodyOf({ ...formOf(edited), payload: '' }, edited).actions).toContainEqual({ kind: 'webhook', webhook: 7, payload: null });
  const finding = { ...automation({ slack: ['1'] }), event: { kind: 'finding', name: '^hang$' } };
  expect(bodyOf(formOf(finding), finding).event).toEqual(finding.event);
  expect(eventText(finding.event)).toBe('A rule like ^hang$ fires');
  expect(eventText({ kind: 'metric.change', metric: 'loss', relative: true, amount: 0.07 })).toBe('loss changes by 7 %');
});
