// The charts in Plotly: a filled band, and the mean.

function traces({ x, low, mean, high }) {
  const line = { type: 'scatter', mode: 'lines', x, hoverinfo: 'x+y', showlegend: false };
  return [
    { ...line, y: low, line: { width: 0 } },
    { ...line, y: high, line: { width: 0 }, fill: 'tonexty', fillcolor: '#2f6fd029' },
    { ...line, y: mean, line: { width: 1.4, color: '#2f6fd0' } },
  ];
}

(async () => {
  const all = await charts();
  const note = noter(all);
  for (const chart of all) {
    const layout = { title: { text: chart.key, font: { size: 13 } }, margin: { l: 48, r: 8, t: 30, b: 24 }, xaxis: { type: 'date' } };
    void Plotly.newPlot(chart.element, traces(chart), layout, { displayModeBar: false }).then((plot) => {
      plot.on('plotly_afterplot', () => note(chart));
      note(chart);
    });
  }
  window.zoom = () => {
    for (const chart of all) void Plotly.relayout(chart.element, { 'xaxis.range': middle(chart) });
  };
})();
