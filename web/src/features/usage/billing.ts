// Plans, limits, prices, cost centres and statements, as the API has them.

import type { BillingRole } from '../accounts/accounts';
import type { Params } from '../../base/api';
import { get } from '../../base/api';
import { formatValue } from '../../base/units';
import type { AssignedPlan, Use } from '../../base/wire';

export const CATEGORIES = ['tracked_hours', 'device_hours', 'energy', 'storage', 'ingest', 'charges'] as const;
export type Category = (typeof CATEGORIES)[number];

export const CATEGORY_NAMES: Record<Category, string> = {
  tracked_hours: 'Tracked hours',
  device_hours: 'Device-hours',
  energy: 'Energy',
  storage: 'Storage',
  ingest: 'Ingestion',
  charges: 'Charges',
};

/** The unit of a limit; charges are in the currency. */
export const LIMIT_UNITS: Record<Category, string> = { tracked_hours: 'h', device_hours: 'h', energy: 'kWh', storage: 'GB', ingest: 'GB', charges: '' };

/** All items of a list, page by page. */
export async function getAll<Item>(path: string, name: string, params: Params = {}): Promise<Item[]> {
  const items: Item[] = [];
  for (let after: string | null = null; ; ) {
    const page: Record<string, unknown> = await get(path, { ...params, limit: 200, after });
    items.push(...(page[name] as Item[]));
    after = page.next as string | null;
    if (after === null) return items;
  }
}

/** The numbers of a text such as `85, 100`. What is no number becomes NaN, which the server refuses. */
export const numbersOf = (text: string): number[] => text.split(/[\s,;]+/).filter(Boolean).map(Number);

/** Today, such as `2026-11-23`. */
export const today = (): string => new Date().toISOString().slice(0, 10);

/** Which plan somebody has on a day; null: none. */
export function planOn(assigned: readonly AssignedPlan[], entity: string | null, day: string): string | null {
  const mine = assigned.filter((assignment) => assignment.entity === entity && assignment.valid_from <= day);
  return mine.sort((a, b) => a.valid_from.localeCompare(b.valid_from)).at(-1)?.plan ?? null;
}

/** What is less than one of the unit of a limit is shown in a smaller one: by it and its factor. */
const SMALLER: Partial<Record<string, [unit: string, factor: number]>> = { GB: ['B', 1e9], kWh: ['Wh', 1000], h: ['s', 3600] };

/** A quantity with its unit, such as `1,234.5 h`; a small one is never shown as none: `140 B`, `< 0.01 EUR`. */
export function quantity(value: number | null, category: Category, currency: string): string {
  if (value === null) return '–';
  const smaller = SMALLER[LIMIT_UNITS[category]];
  if (smaller && value > 0 && value < 1) return formatValue(value * smaller[1], smaller[0]);
  if (category === 'charges' && value > 0 && value < 0.005) return `< ${(0.01).toLocaleString()} ${currency}`;
  const digits = category === 'charges' ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumFractionDigits: value < 10 ? 2 : 1 };
  return `${value.toLocaleString(undefined, digits)} ${LIMIT_UNITS[category] || currency}`;
}

export interface Budget {
  entity: string | null;
  /** null: nothing that was used has a price. */
  charges: number | null;
  expected: number | null;
  /** The limit of charges of the plan; null: none. */
  budget: number | null;
  state: 'none' | 'within' | 'expected over' | 'over';
}

/** Charges against budgets: those of the organisation first, then the largest charges. */
export function budgets(uses: readonly Use[]): Budget[] {
  return uses
    .filter((use) => use.category === 'charges' && (use.entity === null || (use.value ?? 0) > 0 || use.limit !== null))
    .map(({ entity, value, expected, limit }) => {
      const state: Budget['state'] = limit === null ? 'none' : (value ?? 0) > limit ? 'over' : (expected ?? value ?? 0) > limit ? 'expected over' : 'within';
      return { entity, charges: value, expected, budget: limit, state };
    })
    .sort((a, b) => Number(b.entity === null) - Number(a.entity === null) || (b.charges ?? 0) - (a.charges ?? 0));
}

/** What billing roles are called. */
export const BILLING_ROLES: [BillingRole, string][] = [
  ['none', 'None'],
  ['viewer', 'Viewer'],
  ['admin', 'Administrator'],
];

export const billingRoleText = (role: BillingRole): string => BILLING_ROLES.find(([value]) => value === role)![1];

/** Billing administrators administer the organisation too. */
export const mayHaveBillingRole = ({ org_role }: { org_role: 'member' | 'admin' }, role: BillingRole): boolean => role !== 'admin' || org_role === 'admin';
