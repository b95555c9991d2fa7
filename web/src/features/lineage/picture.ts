// A graph as an SVG document.

import { xmlText, type Colors } from '../../chart/chartImage';
import type { Graph } from './graph';
import { NODE_HEIGHT, NODE_WIDTH, type Layout } from './layout';

const TITLE = 26;
const DETAIL = 30;

/** A text that fits into a node. */
export const fitting = (text: string, letters: number): string => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
export const fittingTitle = (text: string): string => fitting(text, TITLE);
export const fittingDetail = (text: string): string => fitting(text, DETAIL);

/** The graph as it is drawn, all of it. */
export function graphSvg({ nodes }: Graph, { width, height, places: points, lines }: Layout, colors: Colors): string {
  const edges = lines.map((line) => `<path d="${line}" fill="none" stroke="${colors.soft}" stroke-width="1.2" marker-end="url(#arrow)"/>`);
  const boxes = nodes.map((node, at) => {
    const { x, y } = points[at]!;
    const [left, top] = [x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2];
    const dashes = node.nameless || node.deleted ? ' stroke-dasharray="4 3"' : '';
    return (
      `<g transform="translate(${left} ${top})"><rect width="${NODE_WIDTH}" height="${NODE_HEIGHT}" rx="${node.kind === 'run' ? 22 : 5}" fill="${colors.background}" stroke="${colors.soft}"${dashes}/>` +
      `<text x="16" y="19" font-weight="600" fill="${colors.text}">${xmlText(fittingTitle(node.title))}</text><text x="16" y="34" fill="${colors.soft}">${xmlText(fittingDetail(node.detail))}</text></g>`
    );
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${Math.ceil(width)}" height="${Math.ceil(height)}" viewBox="0 0 ${width} ${height}" font-family="system-ui, Segoe UI, Roboto, Liberation Sans, sans-serif" font-size="11">` +
    `<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8Z" fill="${colors.soft}"/></marker></defs>` +
    `<rect width="100%" height="100%" fill="${colors.background}"/>${edges.join('')}${boxes.join('')}</svg>`
  );
}
