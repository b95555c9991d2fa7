// Types of the API of accounts, teams and the organisation. Times are ms UTC; null: never, or not known.

import type { Access } from '../../base/api';
import type * as wire from '../../base/wire';
import { own } from '../../base/own';
import type { RequestOptions } from './passkeys';

export type Role = 'viewer' | 'member' | 'admin';

export type Visibility = 'private' | 'restricted' | 'team' | 'organisation' | 'public' | 'open';

/** A project with what the user may do with it and in it. */
export interface ProjectDetail {
  name: string;
  entity: string;
  description: string;
  /** Markdown, and the HTML that the server made of it. */
  overview: string;
  overview_html: string;
  visibility: Visibility;
  /** Levels that it cannot get, and why; empty if the viewer may not change it. */
  blocked_visibilities: Partial<Record<Visibility, string>>;
  owner: string | null;
  created_ms: number;
  deleted_ms: number | null;
  /** When it is removed for good; null outside the trash. */
  purged_ms: number | null;
  runs: number;
  newest_ms: number | null;
  starred: boolean;
  may: string[];
}

export interface ProjectLink {
  name: string;
  entity?: string | null;
  visibility?: string;
  runs?: number;
  newest_ms?: number | null;
}

/** The profile of a user or team, as others see it. */
export interface EntityPage {
  kind: 'user' | 'team';
  name: string;
  display_name: string;
  institution?: string;
  bio?: string;
  location?: string;
  company?: string;
  description?: string;
  picture?: string | null;
  links: wire.ShownLink[];
  /** Markdown, and the HTML that the server made of it. */
  intro: string;
  intro_html?: string;
  teams?: { name: string; display_name: string }[];
  members?: { name: string; display_name: string; role: string; picture?: string | null }[];
  projects: ProjectLink[];
  pinned_reports: wire.ListedReport[];
  /** How the user may join the team; null for members. */
  join?: { how: 'ask' | 'auto' | 'requested'; request: number | null } | null;
  may: string[];
}

/** Where users may sign in. `auto_create`: who gets an account, all, none, or those of some domains. */
export interface Provider {
  id: string;
  label: string;
  kind: 'oidc' | 'github';
  issuer?: string;
  client_id: string;
  client_secret?: string;
  has_secret?: boolean;
  scopes?: string[];
  trust_email?: boolean;
  trust_second_factor?: boolean;
  auto_create?: boolean | string[];
  group_claim?: string | null;
  group_map?: Record<string, { team: string; role: string }>;
  admin_group?: string | null;
}

/** The second factors that a user may choose from. */
export interface Factors {
  code: boolean;
  passkey: RequestOptions | null;
}

/** How the user can confirm who they are. */
export interface ConfirmationWays {
  password: boolean;
  passkey: RequestOptions | null;
  providers: { id: string; label: string }[];
}

export type Scope = 'ingest' | 'read' | 'write' | 'full';

/** `owner`: in the organisation's list. */
export type Key = wire.Key & Partial<Pick<wire.OwnedKey, 'owner' | 'owner_kind'>>;

export type BillingRole = 'none' | 'viewer' | 'admin';

/** A part of a list: pass `next` as `after` for the rest. */
export type Page<Name extends string, Item> = Record<Name, Item[]> & {
  total: number;
  next: string | null;
  may?: string[];
};

export const ROLE_TEXT: Record<Role, string> = { admin: 'Admin', member: 'Member', viewer: 'View-only' };
export const ACCESS_TEXT: Record<Access, string> = { full: 'Full', viewer: 'View-only', none: 'None' };

/** What a built-in role is called on the page; a custom role has its own name. */
export const roleText = (role: string): string => own(ROLE_TEXT, role) ?? role;
