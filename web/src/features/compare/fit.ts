// A straight line through points, by least squares.

export interface Point {
  x: number;
  y: number;
}

export interface Fit {
  slope: number;
  intercept: number;
  /** The share of the variance of y that the line explains. */
  r2: number;
  /** Points that it is fitted to. */
  n: number;
}

const LEAST_POINTS = 3;

/**
 * The line through points on the scale that is shown: x and y are places on the axes, so on a logarithmic axis it is
 * fitted to logarithms. Points that are not finite do not count. null: too few, or all at one x or y.
 */
export function fitOf(points: readonly Point[]): Fit | null {
  const finite = points.filter(({ x, y }) => Number.isFinite(x) && Number.isFinite(y));
  const n = finite.length;
  if (n < LEAST_POINTS) return null;
  const mean = (of: (point: Point) => number): number => finite.reduce((sum, point) => sum + of(point), 0) / n;
  const [mx, my] = [mean(({ x }) => x), mean(({ y }) => y)];
  const xx = mean(({ x }) => (x - mx) ** 2);
  const yy = mean(({ y }) => (y - my) ** 2);
  const xy = mean(({ x, y }) => (x - mx) * (y - my));
  if (xx === 0 || yy === 0) return null;
  const slope = xy / xx;
  return { slope, intercept: my - slope * mx, r2: (xy * xy) / (xx * yy), n };
}

/** The ends of the line within the square of places from 0 to 1; null: it is outside. */
export function fitEnds({ slope, intercept }: Fit): [Point, Point] | null {
  const across = slope === 0 ? [] : [-intercept / slope, (1 - intercept) / slope].sort((a, b) => a - b);
  const from = Math.max(0, across[0] ?? 0);
  const to = Math.min(1, across[1] ?? 1);
  if (from >= to) return null;
  const at = (x: number): Point => ({ x, y: slope * x + intercept });
  return [at(from), at(to)];
}

export const fitText = ({ r2, n }: Fit): string => `r² ${r2.toFixed(2)}, n ${n}`;
