import { describe, expect, it } from 'vitest';
import { preparation, ways, type GuideFor } from './firstRun';

const ORIGIN = 'https://runs.example.org';
const server = (how: Partial<GuideFor> = {}): GuideFor => ({ shared: true, accounts: false, tokens: false, origin: ORIGIN, ...how });

describe('the first-run guide', () => {
  it('needs no preparation on the own machine', () => {
    expect(preparation(server({ shared: false }))).toBeNull();
    expect(ways(server({ shared: false })).map(({ code }) => code).join('')).not.toContain('https');
  });

  it('names this server', () => {
    expect(preparation(server())?.code).toBe(`pip install runvitals\nexport RUNVITALS_SERVER=${ORIGIN}`);
    expect(ways(server())[2].code).toContain(`--to ${ORIGIN}`);
  });

  it.each([{ accounts: true }, { tokens: true }])('tells how to get a key: %o', (how) => {
    expect(preparation(server(how))?.code).toContain(`runvitals login ${ORIGIN}`);
  });
});
