// What users and teams are notified about runs.

export type Channel = 'email' | 'slack';
export type AlertEvent = 'finished' | 'crashed' | 'custom' | 'findings';
export type Level = 'info' | 'warning' | 'error';

export interface Choice {
  email: boolean;
  slack: boolean;
  min_level: Level;
}

export type Choices = Record<AlertEvent, Choice>;

export interface AlertException {
  scope: 'team' | 'project' | 'run';
  name: string;
  mode: 'off' | 'all';
}

export interface PersonalAlerts {
  events: Choices;
  quiet: { on: boolean; start: string; end: string; errors_pass: boolean };
  digest: 'off' | 'hourly' | 'daily';
  daily_at: string;
  time_zone: string;
  exceptions: AlertException[];
  mail: boolean;
  /** The user's own channel of Slack; null: there is none. */
  slack: OwnSlack | null;
  /** Channels can be chosen at Slack. */
  slack_app: boolean;
}

export interface OwnSlack {
  shown: string;
  created_ms: number;
  disabled_ms: number | null;
}

export interface TeamAlerts {
  events: Choices;
  slack_destination: number | null;
  slack_destinations: { id: number; channel: string }[];
  /** Whom rules notify that name nobody. */
  routes: Record<Level, string[]>;
  /** Whom rules can notify, such as slack:3. */
  targets: { target: string; name: string }[];
  editable: boolean;
}

export const EVENTS: readonly (readonly [AlertEvent, string, string])[] = [
  ['finished', 'Run finished', 'It ended successfully on all hosts.'],
  ['crashed', 'Run crashed', 'It failed, crashed, or was lost for ten minutes. Also when a lost run is back.'],
  ['custom', 'Alerts of the run', 'What the training sends with run.alert().'],
  ['findings', 'Findings', 'What rules find: idle GPUs, a hang, a full disk and so on.'],
];
