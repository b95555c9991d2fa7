// Texts about a machine and its checkout, from the facts of a run.

import { groupBy } from '../../base/groups';
import { formatValue } from '../../base/units';
import type { Json } from '../../base/wire';

const fields = (value: Json | undefined): Record<string, Json> => (value !== null && typeof value === 'object' && !Array.isArray(value) ? value : {});
const text = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

/** The devices that collectors named; else those on PCI, of which only the vendor is known. */
function devicesOf(machine: Record<string, Json>): Record<string, Json>[] {
  const listed = Object.values(machine).flatMap((value) => (Array.isArray(value) ? value.map(fields) : []));
  const named = listed.filter((device) => text(device.name) && (text(device.uuid) || text(device.pci)));
  return named.length > 0 ? named : Array.isArray(machine.accelerators) ? machine.accelerators.map(fields) : [];
}

/** `8 × NVIDIA H100, AMD EPYC 9654 (192 cores), 512 GiB`, as far as they are known. */
export function hardwareText(machine: Record<string, Json>): string {
  const byName = groupBy(devicesOf(machine), (device) => (text(device.name) || text(device.vendor)) + (device.unified === true ? ' (unified memory)' : ''));
  const accelerators = [...byName].filter(([name]) => name).map(([name, devices]) => (devices.length > 1 ? `${devices.length} × ${name}` : name));
  const cpu = fields(machine.cpu);
  const cores = cpu.cores ?? cpu.logical_cores;
  const processor = [text(cpu.model) || text(machine.cpu_model), typeof cores === 'number' ? `(${cores} cores)` : ''].filter(Boolean).join(' ');
  const bytes = fields(machine.memory).total_bytes;
  return [...accelerators, processor, typeof bytes === 'number' ? formatValue(bytes, 'bytes') : ''].filter(Boolean).join(', ');
}

/** `git@host:owner/name.git`, `ssh://git@host/owner/name`, `https://host/owner/name.git` */
const REMOTE = /^(?:https?:\/\/|ssh:\/\/(?:[\w.-]+@)?|[\w.-]+@)([\w.-]+\.[a-z]{2,})(?::\d+\/|[:/])([\w./~-]+?)(?:\.git)?\/?$/i;

/** The page of a commit, on the site that the remote is of; null if either is not known, or is not of a public form. */
export function commitHref(git: Json | undefined): string | null {
  const { commit, remote } = fields(git);
  const [, site, path] = REMOTE.exec(text(remote)) ?? [];
  if (!site || !path || !/^[0-9a-f]{7,64}$/.test(text(commit)) || path.includes('..')) return null;
  return `https://${site}/${path}/${site === 'bitbucket.org' ? 'commits' : 'commit'}/${text(commit)}`;
}
