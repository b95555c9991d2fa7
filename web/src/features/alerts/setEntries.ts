// Rules and automations as lines of one list: when, where, how, and where they were set.

import { tellText, ruleText, type StoredRule } from './alertRules';
import { actionsText, eventText, hasFilter, type Automation } from './automations';

export type Entry = {
  /** Unique in the list of a team or user. */
  key: string;
  name: string;
  when: string;
  where: string;
  how: string;
  enabled: boolean;
} & ({ source: 'rule'; rule: StoredRule } | { source: 'automation'; automation: Automation });

export function entryOfRule(rule: StoredRule): Entry {
  const { rule: definition } = rule;
  const list = (name: string): string[] => (definition[name] as string[] | undefined) ?? [];
  return {
    source: 'rule',
    rule,
    key: `rule ${rule.id}`,
    name: rule.name,
    when: ruleText(definition),
    where: whereText(definition.everywhere ? ['all teams'] : list('projects'), [...list('hosts'), String(definition.filter ?? '')]),
    how: tellText(list('tell')),
    enabled: rule.enabled,
  };
}

export function entryOfAutomation(automation: Automation): Entry {
  const { projects, run_name, author, tag } = automation.filter;
  return {
    source: 'automation',
    automation,
    key: `automation ${automation.id}`,
    name: automation.name,
    when: eventText(automation.event),
    where: !hasFilter(automation.event.kind) ? 'the whole team' : whereText(projects, [run_name && `runs like ${run_name}`, author && `by ${author}`, tag && `tagged ${tag}`]),
    how: actionsText(automation.actions),
    enabled: automation.enabled,
  };
}

const whereText = (projects: readonly string[], more: readonly string[]): string => [projects.join(', ') || 'all projects', ...more.filter(Boolean)].join('; ');
