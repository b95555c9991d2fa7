// What the built-in roles may do, for the pages that show and edit roles. Follows the permission matrix of the server.

export type Grant = 'yes' | 'own' | 'if allowed' | 'no';

export interface Permission {
  action: string;
  text: string;
  viewer: Grant;
  member: Grant;
  admin: Grant;
  /** A custom role may add it. */
  custom: boolean;
}

export interface PermissionGroup {
  title: string;
  permissions: Permission[];
}

const LETTERS: Record<string, Grant> = { y: 'yes', o: 'own', i: 'if allowed', n: 'no' };

/** `nyy`: the grants of view-only, member and admin. */
function permission(action: string, text: string, grants: string, custom = false): Permission {
  const [viewer, member, admin] = [...grants].map((letter) => LETTERS[letter]!);
  return { action, text, viewer: viewer!, member: member!, admin: admin!, custom };
}

const ADDED = true;

export const PERMISSIONS: readonly PermissionGroup[] = [
  {
    title: 'Team',
    permissions: [
      permission('team:read', 'See the team and its members', 'yyy'),
      permission('team:read_settings', 'See the settings', 'nny', ADDED),
      permission('team:update', 'Change the profile and the settings', 'nny', ADDED),
      permission('team:update_privacy', 'Change privacy settings', 'nni'),
      permission('member:read_email', "See members' e-mail addresses", 'nny', ADDED),
      permission('member:invite', 'Invite', 'niy', ADDED),
      permission('member:remove', 'Remove members', 'nny', ADDED),
      permission('member:update_role', 'Change roles', 'nny'),
      permission('service_account:manage', 'Manage service accounts', 'nny'),
    ],
  },
  {
    title: 'Projects',
    permissions: [
      permission('project:read', 'See projects', 'yyy'),
      permission('project:create', 'Create projects', 'nyy', ADDED),
      permission('project:update', 'Rename and describe a project', 'noy', ADDED),
      permission('project:update_overview', 'Edit the overview', 'nyy', ADDED),
      permission('project:update_visibility', 'Change who may see a project', 'noy', ADDED),
      permission('project:manage_members', 'Manage members of a project', 'noy'),
      permission('project:delete', 'Delete a project', 'noy', ADDED),
      permission('project:transfer', 'Move a project to another team', 'nny'),
    ],
  },
  {
    title: 'Runs',
    permissions: [
      permission('run:read', 'See runs', 'yyy'),
      permission('run:create', 'Send runs', 'nyy', ADDED),
      permission('run:update', 'Edit name, notes and tags', 'nyy', ADDED),
      permission('run:stop', 'Stop a run', 'noy', ADDED),
      permission('run:move', 'Move a run to another project', 'noy', ADDED),
      permission('run:delete', 'Delete and restore a run', 'noy', ADDED),
      permission('run:set_author', 'Set the author of a run', 'nny'),
    ],
  },
  {
    title: 'Workspaces and reports',
    permissions: [
      permission('workspace:update', 'Save workspaces', 'nyy', ADDED),
      permission('report:read', 'See reports', 'yyy'),
      permission('report:comment', 'Comment on reports', 'yyy'),
      permission('report:create', 'Write reports', 'nyy', ADDED),
      permission('report:update', 'Edit a report', 'noy', ADDED),
      permission('report:delete', 'Delete a report', 'noy', ADDED),
      permission('report:share', 'Share a report with people', 'noy', ADDED),
      permission('report:share_public', 'Share a report by a public link', 'noi', ADDED),
    ],
  },
  {
    title: 'Artifacts, sweeps, registries',
    permissions: [
      permission('artifact:read', 'See artifacts', 'yyy'),
      permission('artifact:download', 'Download artifacts', 'nyy', ADDED),
      permission('artifact:create', 'Create artifacts', 'nyy', ADDED),
      permission('artifact:update', 'Change artifacts', 'nyy', ADDED),
      permission('artifact:delete', 'Delete artifacts', 'nyy', ADDED),
      permission('artifact:alias', 'Set aliases', 'nyy', ADDED),
      permission('sweep:create', 'Create sweeps', 'nyy', ADDED),
      permission('sweep:control', 'Pause, resume and stop a sweep', 'noy', ADDED),
      permission('sweep:delete', 'Delete a sweep', 'noy', ADDED),
      permission('registry:link', 'Link to a registry', 'nyy', ADDED),
      permission('registry:alias', 'Set aliases in a registry', 'nyy', ADDED),
    ],
  },
  {
    title: 'Notifications, usage',
    permissions: [
      permission('automation:manage', 'Manage automations', 'nny', ADDED),
      permission('webhook:manage', 'Manage webhooks', 'nny', ADDED),
      permission('slack:manage', 'Manage Slack destinations', 'nny', ADDED),
      permission('secret:manage', 'Manage secrets', 'nny', ADDED),
      permission('usage:read_team', "See the team's usage", 'nny', ADDED),
      permission('storage:read', "See the team's storage", 'nny', ADDED),
    ],
  },
];

export const GRANT_TEXT: Record<Grant, string> = { yes: 'yes', own: 'own', 'if allowed': 'if allowed', no: '–' };
