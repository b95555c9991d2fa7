// Which charts tell nothing: each of their lines has one value only.

import type { Value } from '../../../base/api';

/** So many equal values of a run that is running are no accident of its beginning. */
const ENOUGH = 20;

/** Whether each line has the same value all the time. While the run is running, there must be enough of them. */
export function areConstant(lines: Iterable<readonly Value[]>, running: boolean): boolean {
  let [hasValues, most] = [false, 0];
  for (const line of lines) {
    const numbers = line.filter((value) => value !== null);
    if (numbers.some((value) => value !== numbers[0])) return false;
    hasValues ||= numbers.length > 0;
    most = Math.max(most, numbers.length);
  }
  return hasValues && (!running || most >= ENOUGH);
}
