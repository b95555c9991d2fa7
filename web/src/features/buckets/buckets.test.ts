import { describe, expect, it } from 'vitest';
import type { BucketPlace } from '../../base/wire';
import { addressOf, conditionOf } from './buckets';

const PLACE: BucketPlace = {
  provider: 's3',
  bucket: 'training',
  prefix: 'files/',
  endpoint: '',
  region: '',
  kms_key: '',
  direct: true,
  steps: [],
  checked_ms: null,
  away_ms: null,
  away_reason: null,
};

describe('a bucket', () => {
  it('has the address that its own tools write', () => {
    expect(addressOf(PLACE)).toBe('s3://training/files/');
    expect(addressOf({ ...PLACE, provider: 'folder', bucket: '/mnt/disk', prefix: '7/' })).toBe('/mnt/disk/7/');
  });

  it('works if its last check and those who used it since say so', () => {
    const ok = { step: 'write', state: 'ok', error: null, milliseconds: 3 } as const;
    expect(conditionOf(PLACE)).toBe('unknown');
    expect(conditionOf({ ...PLACE, checked_ms: 1, steps: [ok, { ...ok, step: 'cors', state: 'missing' }] })).toBe('ok');
    expect(conditionOf({ ...PLACE, checked_ms: 1, steps: [{ ...ok, state: 'failed' }] })).toBe('failed');
    expect(conditionOf({ ...PLACE, checked_ms: 1, steps: [ok], away_ms: 2 })).toBe('failed');
  });
});
