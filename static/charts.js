// Telemetry on any page that has some.
import { Panel } from "./charts/panel.js";

for (const root of document.querySelectorAll("[data-telemetry]")) {
  root.panel = new Panel(root);
  root.dispatchEvent(new CustomEvent("panel", { bubbles: true }));
}
