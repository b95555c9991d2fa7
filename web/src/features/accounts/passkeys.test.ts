import { describe, expect, it } from 'vitest';
import { bytesOf, textOf } from './passkeys';

describe('base64 of URLs', () => {
  it('has neither padding nor signs that addresses use', () => {
    expect(textOf(Uint8Array.from([251, 255, 254]).buffer)).toBe('-__-');
    expect(textOf(Uint8Array.from([1]).buffer)).toBe('AQ');
    expect(textOf(new ArrayBuffer(0))).toBe('');
  });

  it('comes back as it was', () => {
    for (let length = 0; length < 9; length++) {
      const bytes = Uint8Array.from({ length }, (_, at) => (at * 91 + 200) % 256);
      expect(bytesOf(textOf(bytes.buffer))).toEqual(bytes);
    }
  });
});
