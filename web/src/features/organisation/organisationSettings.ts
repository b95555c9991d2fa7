// The organisation's settings as the page shows them: groups, texts and kinds of fields.

interface Named {
  name: string;
  title: string;
  text: string;
}
type NumberField = Named & { kind: 'number'; min: number; max: number; optional?: boolean; fractions?: boolean };
export type SettingField =
  | NumberField
  | (Named & ({ kind: 'switch' } | { kind: 'zone' } | { kind: 'choice'; options: readonly (readonly [string, string])[] } | { kind: 'list' } | { kind: 'text'; max: number }));

const on = (name: string, title: string, text = ''): SettingField => ({ kind: 'switch', name, title, text });
const number = (name: string, title: string, min: number, max: number, text = '', optional = false): NumberField => ({ kind: 'number', name, title, text, min, max, optional });
const choice = (name: string, title: string, options: readonly (readonly [string, string])[], text = ''): SettingField => ({ kind: 'choice', name, title, text, options });
const LOCKS = [
  ['none', 'Each team decides'],
  ['on', 'On in all teams'],
  ['off', 'Off in all teams'],
] as const;

export const SETTING_GROUPS: readonly { title: string; fields: readonly SettingField[] }[] = [
  {
    title: 'Organisation',
    fields: [
      { kind: 'text', name: 'name', title: 'Name', text: '', max: 64 },
      { kind: 'text', name: 'url', title: 'Address of this server', text: 'Links in mails begin with it.', max: 300 },
      { kind: 'text', name: 'support_contact', title: 'Where users get help', text: 'An e-mail address or a link, shown where users sign in.', max: 300 },
      { kind: 'zone', name: 'time_zone', title: 'Time zone', text: 'Of times in mails to users who chose none. Type a city or an offset such as +02.' },
    ],
  },
  {
    title: 'Sign-up and sign-in',
    fields: [
      choice('signup', 'Who may sign up', [
        ['closed', 'Nobody: administrators create accounts'],
        ['invite', 'Whoever is invited'],
        ['domain', 'Whoever has an address of a listed domain'],
        ['open', 'Everyone'],
      ]),
      { kind: 'list', name: 'signup_domains', title: 'Domains', text: 'One per line, for sign-up by domain.' },
      choice('default_access', 'Access of new accounts', [
        ['full', 'Full'],
        ['viewer', 'View-only'],
        ['none', 'None'],
      ]),
      on('password_login', 'Sign in by password'),
      number('session_days', 'Days until a session ends', 1, 90),
      number('session_idle_days', 'Days until an unused session ends', 1, 30),
      number('sudo_minutes', 'Minutes for which a confirmed password counts', 5, 60),
      number('invitation_days', 'Days for which an invitation is valid', 1, 30),
    ],
  },
  {
    title: 'Teams',
    fields: [
      choice('team_creation', 'Who creates teams', [
        ['admins', 'Administrators of the organisation'],
        ['members', 'Everyone'],
      ]),
      on('team_admins_invite_new', 'Team administrators may invite people without an account'),
      on('team_admins_edit_privacy', 'Team administrators may change privacy settings'),
      on('admin_team_access', 'Administrators of the organisation may join teams', 'As administrators of the team. It is in the audit log.'),
      on('members_see_emails', "Members see each other's e-mail addresses"),
      on('hide_teams_by_default', 'Hide new teams from non-members'),
      on('code_saving_default', 'Save code by default in new teams'),
    ],
  },
  {
    title: 'Visibility',
    fields: [
      choice('anonymous_access', 'Visitors without an account', [
        ['off', 'See nothing'],
        ['read', 'See public projects'],
      ]),
      on('allow_public_projects', 'Allow public projects'),
      on('allow_public_links', 'Allow public links'),
      { kind: 'list', name: 'embed_origins', title: 'Sites that may show reports in frames', text: 'One per line, such as https://wiki.example.org.' },
      on('personal_entities', 'Users have projects of their own', 'Off: new projects belong to teams. Present ones stay where they are.'),
      choice('personal_visibility', 'New projects of users are', [
        ['team', 'Private'],
        ['organisation', 'For the organisation'],
        ['public', 'Public'],
        ['open', 'Open'],
      ]),
      choice('enforce_hidden', 'Teams hidden from non-members', LOCKS),
      choice('enforce_private', 'Only private projects', LOCKS),
      choice('enforce_members_invite', 'Members may invite', LOCKS),
      choice('enforce_public_sharing', 'Public links in teams', LOCKS),
      choice('enforce_code_saving', 'Code saving', LOCKS),
    ],
  },
  {
    title: 'Keys and retention',
    fields: [
      choice('api_key_creation', 'Who creates API keys', [
        ['members', 'Everyone'],
        ['admins', 'Administrators of the organisation'],
      ]),
      number('key_max_age_days', 'Most days that a key lives', 1, 3650, 'Empty: without a limit.', true),
      number('trash_days', 'Days in the trash', 1, 365),
      number('storage_limit_gb', 'Storage of each team and user, in GB', 1, 1_000_000, 'Shown with what they use; nothing is refused beyond it. Empty: without a limit.', true),
      number('audit_days', 'Days that the audit log is kept', 90, 36_500),
      on('audit_anonymise', 'Remove names of deleted users from the audit log', 'Their entries stay, as deleted-user and a number. It concerns accounts that are deleted from now on.'),
    ],
  },
  {
    title: 'Usage and cost',
    fields: [
      { kind: 'text', name: 'currency', title: 'Currency', text: 'Of prices, such as EUR.', max: 3 },
      number('idle_percent', 'Utilisation below which a device is idle, in percent', 1, 100),
      number('idle_minutes', 'Minutes after which it counts as idle', 1, 240),
      on('usage_names', 'Members see what each member of their team used'),
      on('charge_unknown_use', 'Count devices of which it is not known whether a run used them'),
      { ...number('pue', 'Energy of the site for each kWh of its machines (PUE)', 1, 10, 'Such as 1.25.'), fractions: true },
      { ...number('co2_g_per_kwh', 'CO₂ of a kWh, in grams', 0, 5000, 'Empty: not known.', true), fractions: true },
    ],
  },
  {
    title: 'Alerts and requests to other servers',
    fields: [
      on('alert_console', 'Alerts contain the last lines of a run’s output', 'For those who may read the run. What looks like a secret is hidden.'),
      number('team_messages_an_hour', 'Messages that a team’s alerts and automations send in an hour', 1, 100_000, 'One summary an hour says what is over it. Empty: no limit.', true),
      choice('outside_images', 'Images from other sites in texts', [
        ['proxy', 'Shown: this server fetches them'],
        ['off', 'Not shown: a link instead'],
      ]),
      { kind: 'list', name: 'slack_hosts', title: 'Other hosts of incoming webhooks', text: 'One per line, such as chat.example.org: services that take messages as Slack does, such as Mattermost.' },
      { kind: 'list', name: 'webhook_http', title: 'Hosts that may be asked without encryption', text: 'One per line. All others need https.' },
      { kind: 'list', name: 'outbound_allow', title: 'Private networks that may be reached', text: 'One per line: a network such as 10.1.0.0/16, or an address and port. Public addresses need not be listed.' },
      { kind: 'text', name: 'outbound_proxy', title: 'Proxy', text: 'Such as http://proxy.example.org:3128. Empty: requests go out directly.', max: 300 },
    ],
  },
];
