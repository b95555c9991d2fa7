import { expect, it } from 'vitest';

import { reportOfText } from './copiedText';

it('a first heading is the title of a report', () => {
  expect(reportOfText('# Which rate? #\r\n\r\nA rate of **0.1**.\r\n')).toEqual({ title: 'Which rate?', markdown: 'A rate of **0.1**.' });
  expect(reportOfText('  Words.\n\n# Later')).toEqual({ title: 'Untitled report', markdown: 'Words.\n\n# Later' });
});

it('rows of a sheet are a table', () => {
  expect(reportOfText('run\tloss\na|b\t0.1\nc\t\n').markdown).toBe('| run | loss |\n| - | - |\n| a\\|b | 0.1 |\n| c |  |');
  expect(reportOfText('run\tloss\nwords').markdown).toBe('run\tloss\nwords');
});
