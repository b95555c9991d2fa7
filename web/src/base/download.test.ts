import { expect, it } from 'vitest';
import { fileName } from './download';

it.each([
  ['GPU power', 'GPU-power.png'],
  ['../../etc/passwd', 'etc-passwd.png'],
  ['<img src=x>\u202e', 'img-src-x.png'],
  ['Größe/s', 'Größe-s.png'],
  ['…', 'runvitals.png'],
  ['x'.repeat(500), `${'x'.repeat(100)}.png`],
])('%s is saved as %s', (title, name) => {
  expect(fileName(title, 'png')).toBe(name);
});
