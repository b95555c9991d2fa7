// What the pages of all libraries share: the same points, in as many charts of the same size.

const WIDTH = 404;
const HEIGHT = 221;

/** The charts of the points: an element each, its x, and low, mean and high of its buckets. */
async function charts() {
  const { groups, bucket_ms: width } = await (await fetch('points.json')).json();
  const grid = document.getElementById('grid');
  const found = [];
  for (const { t, series, min, max } of groups) {
    for (const [key, mean] of Object.entries(series)) {
      const element = document.createElement('div');
      element.style.cssText = `display: inline-block; width: ${WIDTH}px; height: ${HEIGHT}px`;
      grid.append(element);
      found.push({ key, element, x: t.map((at) => at + (width ?? 0) / 2), mean, low: min?.[key] ?? mean, high: max?.[key] ?? mean });
    }
  }
  return found;
}

const isInView = (element) => element.getBoundingClientRect().top < window.innerHeight;

/** Note each drawing of a chart on the timeline; all charts are there when those in view were drawn once. */
function noter(all) {
  const left = new Set(all.filter(({ element }) => isInView(element)));
  return (chart) => {
    left.delete(chart);
    timeline.charts += 1;
    timeline.note(left.size === 0);
  };
}

/** The middle third of the time. */
function middle({ x }) {
  const [from, to] = [x[0], x[x.length - 1]];
  return [from + (to - from) / 3, to - (to - from) / 3];
}
