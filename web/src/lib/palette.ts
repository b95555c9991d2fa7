// Colours of lines: ten that people with any colour vision can tell apart in this order, legible on white and on black.

const LIGHT = ['#2f6fd0', '#d9730d', '#12897b', '#c13c5e', '#7a56c7', '#5d8a13', '#a0522d', '#0f84b0', '#b0449c', '#7a6a00'];
const DARK = ['#6ea3f5', '#f0993e', '#3fbfae', '#f0708f', '#a78bf0', '#9cc04a', '#d08a62', '#4fb6de', '#de7fcd', '#c4b045'];

/** The colour of the i-th line of a chart: the same for the same line, independent of the other lines. */
export function lineColor(i: number, dark: boolean): string {
  const colors = dark ? DARK : LIGHT;
  return colors[i % colors.length]!;
}

export function translucent(color: string, alpha: number): string {
  return `${color}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, '0')}`;
}
