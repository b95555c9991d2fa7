// Runs in every measured page before its own code: when what is drawn can be seen, on the browser's own clock.
//
// A chart counts as painted in the frame after its first drawing: a task that is queued in an animation frame runs
// after the frame was handed to the compositor. Long tasks and the time from an input to the next frame are those that
// the browser itself reports.
(() => {
  const drawn = new Set();
  const timeline = { first: null, all: null, last: 0, charts: 0, longTasks: [], inputs: [], shift: 0, shifts: [] };
  window.timeline = timeline;

  const afterPaint = (work) => requestAnimationFrame(() => setTimeout(() => work(performance.now()), 0));

  function isInView(element) {
    const { top, bottom, width } = element.getBoundingClientRect();
    return width > 0 && bottom > 0 && top < window.innerHeight;
  }

  /** Whether every chart in view is drawn, in our page: none waits for its points, and each has a canvas that was drawn. */
  function isComplete() {
    if (timeline.charts === 0) return false;
    if ([...document.querySelectorAll('[aria-busy="true"]')].some(isInView)) return false;
    return [...document.querySelectorAll('figure')].filter(isInView).every((figure) => drawn.has(figure.querySelector('canvas')));
  }

  let waiting = false;
  /** Whether everything is drawn, as a page said last; null if it says nothing. */
  let complete = null;
  function noteDrawing(canvas) {
    if (canvas instanceof HTMLCanvasElement && canvas.closest('figure')) {
      if (!drawn.has(canvas)) timeline.charts += 1;
      drawn.add(canvas);
      timeline.note();
    }
  }

  /** Something was drawn. Pages of other libraries call it from their own events. */
  timeline.note = (isAll = null) => {
    complete = isAll;
    if (waiting) return;
    waiting = true;
    afterPaint((now) => {
      waiting = false;
      timeline.first ??= now;
      timeline.last = now;
      if (timeline.all === null && (complete ?? isComplete())) timeline.all = now;
    });
  };

  for (const name of ['stroke', 'drawImage']) {
    const original = CanvasRenderingContext2D.prototype[name];
    CanvasRenderingContext2D.prototype[name] = function draw(...given) {
      noteDrawing(this.canvas);
      return original.apply(this, given);
    };
  }

  const observe = (type, how, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true, ...how });
  observe('longtask', {}, ({ startTime, duration }) => timeline.longTasks.push([startTime, duration]));
  observe('layout-shift', {}, ({ value, hadRecentInput, sources, startTime }) => {
    if (hadRecentInput) return;
    timeline.shift += value;
    timeline.shifts.push([startTime, value, ...sources.map(({ node }) => node?.outerHTML?.slice(0, 120) ?? node?.textContent)]);
  });
  observe('event', { durationThreshold: 16 }, ({ name, startTime, duration }) => timeline.inputs.push([name, startTime, duration]));
})();
