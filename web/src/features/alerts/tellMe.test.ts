import { expect, it } from 'vitest';
import { MINE, newWish, placesOf, requestOf, wishName } from './tellMe';

const choice = { email: true, slack: false, min_level: 'info' } as const;
const events = { finished: choice, crashed: choice, custom: choice, findings: choice };

it('about runs of the user it is a preference', () => {
  const wish = { ...newWish(MINE), mail: false, ownSlack: true };
  expect(requestOf(wish, 'ada', events, [])).toEqual({
    method: 'PUT',
    path: 'account/alerts',
    body: { events: { crashed: { email: false, slack: true, min_level: 'info' } } },
  });
});

it('in the own space it is a rule', () => {
  const wish = { ...newWish('ada'), occasion: 'metric' as const, metric: ' loss ', value: '5', projects: 'digits, ,mnist' };
  expect(requestOf(wish, 'ada', events, ['loss > 5 (digits, mnist)'])).toEqual({
    method: 'POST',
    path: 'entities/ada/alert-rules',
    body: { rule: { name: 'loss > 5 (digits, mnist) 2', condition: { kind: 'threshold', metric: 'loss', operator: '>', value: 5 }, tell: ['author'], projects: ['digits', 'mnist'] } },
  });
});

it('in a team it is an automation', () => {
  const wish = { ...newWish('vision'), occasion: 'alias' as const, alias: 'v1.0', slack: ['3'] };
  const { path, body } = requestOf(wish, 'ada', events, []);
  expect(path).toBe('teams/vision/automations');
  expect(body).toMatchObject({
    name: 'A version gets the alias v1.0',
    event: { kind: 'artifact.alias', alias: '^v1\\.0$' },
    actions: [{ kind: 'mail', members: ['ada'] }, { kind: 'slack', destination: 3 }],
  });
});

it('a value that is no number is left to the server', () => {
  const wish = { ...newWish('vision'), occasion: 'metric' as const, metric: 'loss', value: 'low' };
  expect(requestOf(wish, 'ada', events, []).body.event).toMatchObject({ value: 'low' });
});

it('long names are cut and stay different', () => {
  const wish = { ...newWish('vision'), projects: 'p'.repeat(100) };
  const first = requestOf(wish, 'ada', events, []).body.name as string;
  const second = requestOf(wish, 'ada', events, [first]).body.name as string;
  expect([first.length, second.length]).toEqual([64, 64]);
  expect(second.endsWith(' 2')).toBe(true);
});

it('each occasion has its places', () => {
  const ada = { name: 'ada', personal_entities: true };
  expect(placesOf('fails', ada, [['vision', 'Vision']]).map(([name]) => name)).toEqual([MINE, 'vision']);
  expect(placesOf('metric', ada, [['vision', 'Vision']]).map(([name]) => name)).toEqual(['ada', 'vision']);
  expect(placesOf('spend', null, [['vision', 'Vision']]).map(([name]) => name)).toEqual(['vision']);
  expect(wishName({ ...newWish('vision'), occasion: 'spend', percent: '90' })).toBe('90 % of the plan is used');
});
