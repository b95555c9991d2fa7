// The charts in ECharts: a band of two stacked lines, and the mean.

const pairs = (x, y) => x.map((at, i) => [at, y[i]]);

function options({ key, x, low, mean, high }) {
  const line = { type: 'line', showSymbol: false, animation: false, lineStyle: { width: 1.4 } };
  const hidden = { ...line, lineStyle: { opacity: 0 }, stack: 'band' };
  return {
    animation: false,
    title: { text: key, textStyle: { fontSize: 13 } },
    grid: { left: 48, right: 8, top: 30, bottom: 24 },
    xAxis: { type: 'time' },
    yAxis: { type: 'value', scale: true },
    tooltip: { trigger: 'axis' },
    dataZoom: [{ type: 'inside' }],
    series: [
      { ...hidden, data: pairs(x, low) },
      { ...hidden, areaStyle: { opacity: 0.16 }, data: pairs(x, high.map((value, i) => value - low[i])) },
      { ...line, data: pairs(x, mean) },
    ],
  };
}

(async () => {
  const all = await charts();
  const note = noter(all);
  for (const chart of all) {
    chart.plot = echarts.init(chart.element);
    chart.plot.on('finished', () => note(chart));
    chart.plot.setOption(options(chart));
  }
  echarts.connect(all.map(({ plot }) => plot));
  window.zoom = () => {
    for (const chart of all) {
      const [startValue, endValue] = middle(chart);
      chart.plot.dispatchAction({ type: 'dataZoom', startValue, endValue });
    }
  };
})();
