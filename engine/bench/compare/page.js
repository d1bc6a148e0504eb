// Draws the figures, again when the colour scheme changes.
const charts = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");

function axis(chart, ours) {
  const grid = dark.matches ? "#2b313a" : "#e5e7eb";
  const base = { gridcolor: grid, zerolinecolor: grid, automargin: true };
  return ours ? { ...base, type: chart.log ? "log" : "linear", title: { text: chart.unit } } : base;
}

function draw(chart) {
  const clear = "rgba(0,0,0,0)";
  const rows = Math.max(...chart.traces.map((trace) => trace.y.length));
  const height = chart.horizontal ? 90 + 26 * rows : 320;
  const layout = {
    barmode: "group",
    height,
    paper_bgcolor: clear,
    plot_bgcolor: clear,
    font: { family: "system-ui, sans-serif", size: 12, color: dark.matches ? "#e5e7eb" : "#1f2937" },
    margin: { l: 50, r: 10, t: 60, b: 40 },
    legend: { orientation: "h", y: 1.03, yanchor: "bottom" },
    xaxis: axis(chart, chart.horizontal),
    yaxis: axis(chart, !chart.horizontal),
  };
  if (!chart.horizontal) layout.xaxis.tickangle = 0;
  if (chart.horizontal) {
    layout.yaxis.autorange = "reversed";
    layout.shapes = [{ type: "line", x0: 1, x1: 1, y0: 0, y1: 1, yref: "paper", line: { dash: "dot", color: "#6b7280" } }];
  }
  Plotly.react(chart.id, chart.traces, layout, { responsive: true, displayModeBar: false });
}

const drawAll = () => charts.forEach(draw);
dark.addEventListener("change", drawAll);
drawAll();
