// What the importance of parameters says, in words.

import { count } from '../../base/units';
import type { Importances } from '../../base/wire';

const TRUSTED = 0.1;

export const percent = (share: number): string => `${Math.round(share * 100)} %`;

export function importanceText({ runs, score }: Pick<Importances, 'runs' | 'score'>): string {
  const of = runs === 1 ? '1 run' : `${count(runs)} runs`;
  if (score === null) return `${of} with this number: too few to say anything, or their parameters are all the same.`;
  if (score < TRUSTED) return `Of ${of}. The parameters do not explain this number.`;
  return `Of ${of}. The parameters explain ${percent(score)} of how it differs.`;
}
