import { expect, it } from 'vitest';
import { commitHref, hardwareText } from './hardware';
import type { Json } from '../../base/wire';

it('describes a machine, as far as it is known', () => {
  const machine: Record<string, Json> = {
    cpu: { model: 'AMD EPYC 9654', cores: 192 },
    memory: { total_bytes: 512 * 2 ** 30 },
    accelerators: [{ vendor: 'NVIDIA' }, { vendor: 'NVIDIA' }, { vendor: 'Intel' }],
  };
  expect(hardwareText(machine)).toBe('2 × NVIDIA, Intel, AMD EPYC 9654 (192 cores), 512 GiB');
  const gpus = [0, 1].map((index) => ({ index, uuid: `GPU-${index}`, name: 'NVIDIA H100' }));
  expect(hardwareText({ ...machine, gpu_nvidia: gpus })).toBe('2 × NVIDIA H100, AMD EPYC 9654 (192 cores), 512 GiB');
  expect(hardwareText({ cpu_model: 'Xeon' })).toBe('Xeon');
  expect(hardwareText({})).toBe('');
});

it('links a commit where the remote names a site', () => {
  const commit = '0ec4261a';
  for (const remote of ['git@github.com:me/x.git', 'https://github.com/me/x', 'ssh://git@github.com:22/me/x.git', 'https://github.com/me/x/']) {
    expect(commitHref({ commit, remote })).toBe(`https://github.com/me/x/commit/${commit}`);
  }
  expect(commitHref({ commit, remote: 'https://bitbucket.org/me/x.git' })).toBe(`https://bitbucket.org/me/x/commits/${commit}`);
  for (const git of [{ commit, remote: null }, { commit: null, remote: 'git@github.com:me/x' }, { commit: 'x', remote: 'git@github.com:me/x' }]) {
    expect(commitHref(git)).toBeNull();
  }
  for (const remote of ['/srv/git/x', 'javascript:alert(1)//a.com/x', 'file:///x', 'git@github.com:../x', 'https://a.com/x"y']) {
    expect(commitHref({ commit, remote })).toBeNull();
  }
});
