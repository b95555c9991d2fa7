import { expect, it } from 'vitest';
import { csvText, joinedRows } from './csv';

it('tables of panels are joined by their columns', () => {
  const lines = { title: 'Loss', rows: [['run', 'step', 'value'], ['a', 0, 2], ['a', 1, null]] };
  const bars = { title: 'Power', rows: [['run', 'last'], ['b', 7]] };
  expect(csvText(joinedRows([lines, bars, { title: 'Empty', rows: [] }]))).toBe('panel,run,step,value,last\nLoss,a,0,2,\nLoss,a,1,,\nPower,b,,,7\n');
});
