// The grid of a large fleet, fed by the connection that the charts of the page have.
import { Grid } from "./charts/grid.js";

const root = document.querySelector("[data-grid]");
const read = (id) => JSON.parse(document.getElementById(id).textContent);

if (root) {
  const grid = new Grid(root, { nodes: read("grid-nodes"), metrics: read("grid-metrics") });
  const telemetry = document.querySelector("[data-telemetry]");

  const follow = () => telemetry.panel.followGrid(grid.select.value, (message) => grid.take(message));
  const remember = () => {
    const query = new URLSearchParams(window.location.search);
    query.set("grid", grid.select.value);
    window.history.replaceState(null, "", `${window.location.pathname}?${query}`);
  };

  grid.select.addEventListener("change", () => {
    remember();
    follow();
  });
  if (telemetry.panel) follow();
  else telemetry.addEventListener("panel", follow);
  grid.schedule();
}
