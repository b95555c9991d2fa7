// What the fields of forms offer while somebody types: projects, users and teams by the server's search, time zones.

import { get } from './api';
import type { ListedProjectsPage, OrgTeam, Project, UsersPage } from './wire';

export interface Choice {
  /** What the field gets. */
  value: string;
  /** What is beside it: a name, an offset. */
  note?: string;
}

/** Returns what matches a text, the best first. */
export type Find = (text: string, signal: AbortSignal) => Promise<Choice[]>;

const MAX_CHOICES = 20;
/** The server finds users from so many characters on. */
const MIN_USER_CHARACTERS = 2;

/** `team/project` of all that the user may read, the newest first. */
export const projectAddresses: Find = async (text, signal) => {
  const projects = await get<Project[]>('projects', { text, limit: MAX_CHOICES }, signal);
  return projects.map(({ entity, name }) => ({ value: entity === null ? name : `${entity}/${name}` }));
};

/** The same without their teams. */
export const projectNames: Find = async (text, signal) => {
  const projects = await get<Project[]>('projects', { text, limit: MAX_CHOICES }, signal);
  return [...new Set(projects.map(({ name }) => name))].map((value) => ({ value }));
};

/** The paths of the pages of projects. */
export const projectPaths: Find = async (text, signal) => {
  const words = text.replace(/^\/+/, '');
  return (await projectAddresses(words, signal)).map(({ value }) => ({ value: `/${value.split('/').map(encodeURIComponent).join('/')}` }));
};

/** The names of the projects of a team or user. */
export const projectsOf =
  (entity: string): Find =>
  async (text, signal) =>
    (await get<ListedProjectsPage>(`entities/${encodeURIComponent(entity)}/projects`, { text, limit: MAX_CHOICES }, signal)).projects.map(({ name }) => ({ value: name }));

export const people: Find = async (text, signal) => {
  if (text.length < MIN_USER_CHARACTERS) return [];
  const { users } = await get<UsersPage>('users', { query: text, limit: MAX_CHOICES }, signal);
  return users.map(({ name, display_name }) => ({ value: name, note: display_name === name ? 'user' : `${display_name}, user` }));
};

/** Teams and users, for administrators of the organisation. */
export const entities: Find = async (text, signal) => {
  const [{ teams }, users] = await Promise.all([get<{ teams: OrgTeam[] }>('organisation/teams', { text, limit: MAX_CHOICES }, signal), people(text, signal)]);
  return [...teams.map(({ name }) => ({ value: name, note: 'team' })), ...users].slice(0, MAX_CHOICES);
};

/** How far the clocks of a zone are ahead of UTC: `UTC+02:00`. */
function offsetOf(zone: string, now: number): string {
  const parts = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' }).formatToParts(now);
  return (parts.find(({ type }) => type === 'timeZoneName')?.value ?? '').replace('GMT', 'UTC');
}

/** Time zones by words of their name, `new york`, or by their offset, `+02`. */
export const timeZones: Find = (text) => {
  const words = text.toLowerCase().split(/[\s_/]+/).filter(Boolean);
  const now = Date.now();
  const choices: Choice[] = [];
  for (const zone of ['UTC', ...Intl.supportedValuesOf('timeZone')]) {
    const name = zone.toLowerCase();
    const note = offsetOf(zone, now);
    if (words.every((word) => name.includes(word) || note.toLowerCase().includes(word))) choices.push({ value: zone, note });
    if (choices.length === MAX_CHOICES) break;
  }
  return Promise.resolve(choices);
};
