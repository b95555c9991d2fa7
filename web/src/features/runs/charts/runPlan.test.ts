import { expect, it } from 'vitest';
import { seriesOf } from './runPlan';

it('gives each series its definition, its host, and whether it is zero there', () => {
  const definition = { template: 'disk.in', unit: 'MiB', kind: 'counter' as const, subject: 'Disk', chart: 'Disk', text: 'Read.', source: '/proc' };
  const series = seriesOf({
    places: [
      { host: 'a', role: 'monitor' },
      { host: 'b', role: 'monitor' },
    ],
    metrics: [{ ...definition, mlflow: { unit: 'MB', factor: 2 }, series: [{ key: 'disk.in', mlflow: 'system/disk', places: [0, 1], zero: [1] }] }],
  });
  const mlflow = { name: 'system/disk', unit: 'MB', factor: 2 };
  expect(series).toEqual([
    { ...definition, key: 'disk.in', host: 'a', role: 'monitor', mlflow, zero: false },
    { ...definition, key: 'disk.in', host: 'b', role: 'monitor', mlflow, zero: true },
  ]);
});
