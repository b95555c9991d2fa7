// Types of the API of accounts, teams and the organisation. Times are ms UTC; null: never, or not known.

import type { Access, Preferences } from '../../base/api';
import type * as wire from '../../base/wire';
import { own } from '../../base/own';
import type { RequestOptions } from './passkeys';
import type { Json } from '../../base/wire';

export type Role = 'viewer' | 'member' | 'admin';

/** How to sign in here. */
export interface SignInMethods {
  password: boolean;
  /** Where passkeys work; null: nowhere. */
  passkey_origin: string | null;
  providers: { id: string; label: string }[];
  signup: 'closed' | 'invite' | 'domain' | 'open';
  support_contact?: string;
  /** The name of the organisation; empty: it has none. */
  organisation: string;
  /** The digest of its picture. */
  picture: string | null;
}

export interface Link {
  label: string;
  url: string;
}

/** What users say about themselves. */
export interface Profile extends Preferences {
  display_name: string;
  institution: string;
  bio: string;
  location: string;
  links: Link[];
  intro: string;
  hide_teams: boolean;
  default_entity: string;
  default_visibility: string;
  code_saving: boolean;
  /** Mails that are not sent: before something ends, and about teams. */
  mail_switched_off: ('reminders' | 'teams')[];
  /** Where such mails go; empty: to the primary address. */
  mail_address: string;
}

/** A feature under development. `forced`: what the organisation decided for all. */
export interface BetaFeature {
  name: string;
  text: string;
  since: string;
  stage: 'beta' | 'retiring';
  on: boolean;
  forced: 'on' | 'off' | null;
}

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
  links: Link[];
  /** Markdown, and the HTML that the server made of it. */
  intro: string;
  intro_html?: string;
  teams?: { name: string; display_name: string }[];
  members?: { name: string; display_name: string; role: string; picture?: string | null }[];
  projects: ProjectLink[];
  /** How the user may join the team; null for members. */
  join?: { how: 'ask' | 'auto' | 'requested'; request: number | null } | null;
  may: string[];
}

export interface Email {
  id: number;
  address: string;
  verified_ms: number | null;
  primary: boolean;
  failing?: boolean;
  login_methods?: string[];
}

/** Where the audit log is sent; `url` null: nowhere. */
export interface AuditWebhook {
  url: string | null;
  delivered_ms: number | null;
  waiting: number;
  problem: string | null;
}

export interface Session {
  id: number;
  current: boolean;
  ip: string;
  agent: string;
  method: string;
  created_ms: number;
  seen_ms: number;
}

/** A login at a provider that is linked to the account. */
export interface Login {
  id: number;
  provider: string;
  label: string;
  address: string | null;
  created_ms: number;
  last_used_ms: number | null;
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

/** How mail is sent. */
export interface MailServer {
  configured: boolean;
  host: string;
  port: number | null;
  encryption: 'starttls' | 'tls' | 'none';
  user: string;
  has_password: boolean;
  mail_from: string;
  url: string;
  editable: boolean;
  enforced_by: string | null;
  mail_from_enforced_by: string | null;
  /** Why mail cannot be sent at the moment. */
  problem: string | null;
}

/** Provisioning of users and teams by an identity provider. */
export interface Provisioning {
  enabled: boolean;
  created_ms: number | null;
  last_used_ms: number | null;
  /** Where it sends its requests on this server. */
  path: string;
}

/** A service whose tokens programs may show instead of keys. */
export interface Issuer {
  id: number;
  name: string;
  url: string;
  audience: string;
  enabled: boolean;
  created_ms: number;
  /** Its keys were entered here; the server does not ask the issuer. */
  pasted_keys: boolean;
}

/** Tokens with this subject act as a service account. */
export interface Subject {
  subject: string;
  service_account: string;
  team: string | null;
}

export interface Passkey {
  id: number;
  name: string;
  /** It is synced to other devices of the user. */
  backed_up: boolean;
  created_ms: number;
  last_used_ms: number | null;
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

export interface SecondFactor {
  /** A code of an authenticator app is asked for. */
  enabled: boolean;
  /** A passkey is asked for after the password. */
  passkeys: boolean;
  recovery_codes_left: number;
}

/** What an authenticator app needs, while the second factor is being set up. */
export interface SecondFactorSetup {
  secret: string;
  uri: string;
}

export type Scope = 'ingest' | 'read' | 'write' | 'full';

/** `owner`: in the organisation's list. */
export type Key = wire.Key & { owner?: string; owner_kind?: 'user' | 'service_account' };

export interface Member {
  name: string;
  picture?: string | null;
  display_name: string;
  email?: string | null;
  role: Role;
  custom_role: string | null;
  access: Access;
  created_ms: number;
  last_seen_ms?: number | null;
  expires_ms: number | null;
  added_by?: string | null;
}

export interface CustomRole {
  id: number;
  name: string;
  description: string;
  base: 'viewer' | 'member';
  permissions: string[];
  people: number;
  teams?: number;
}

export interface AuditEvent {
  id: number;
  time_ms: number;
  action: string;
  outcome: string;
  actor_kind: string;
  actor_name: string;
  via: string;
  ip: string | null;
  request_id?: string | null;
  entity: string | null;
  project?: string | null;
  run?: string | null;
  target: string | null;
  before: Record<string, Json> | null;
  after: Record<string, Json> | null;
}

export type BillingRole = 'none' | 'viewer' | 'admin';

export interface OrgMember {
  name: string;
  display_name: string;
  email: string | null;
  org_role: 'member' | 'admin';
  access: Access;
  billing_role: BillingRole;
  state: string;
  teams: string[];
  last_seen_ms: number | null;
  created_ms: number;
}

/** A team with what the user may do in it. */
export interface Team {
  name: string;
  picture?: string | null;
  display_name: string;
  description: string;
  type: 'work' | 'academic';
  company: string;
  created_ms: number;
  deleted_ms: number | null;
  may: string[];
}

export interface TeamSummary {
  name: string;
  display_name: string;
  members: number;
  created_ms: number;
  without_administrator?: boolean;
  deleted_ms?: number | null;
}

/** A setting with whether and why it cannot be changed. */
export interface Setting {
  value: Json;
  editable: boolean;
  enforced_by: string | null;
}

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
