"use strict";
for (const plot of document.querySelectorAll("svg.plot")) {
  const { left, width, s, unit } = plot.dataset;
  const figure = plot.closest("figure");
  const lines = [...plot.querySelectorAll("path.line")].map((line) => ({
    name: line.dataset.name,
    points: line.dataset.p.trim().split(" ").filter(Boolean).map((point) => {
      const [at, value] = point.split(":");
      return { at: Number(at), value };
    }),
  }));
  const cursor = document.createElementNS(plot.namespaceURI, "path");
  cursor.setAttribute("class", "cursor");
  const readout = document.createElement("div");
  readout.className = "readout";
  readout.hidden = true;
  readout.setAttribute("aria-hidden", "true");
  figure.append(readout);
  const nearest = (points, at) => points.reduce(
    (best, point) => (!best || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best), null);
  plot.addEventListener("pointermove", (event) => {
    const view = plot.viewBox.baseVal;
    const box = plot.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * view.width;
    const at = (x - left) / width * s;
    if (at < 0 || at > Number(s)) return;
    const rows = lines.map(({ name, points }) => {
      const point = nearest(points, at);
      return `${name}: ${point && point.value ? `${point.value} ${unit}` : "–"}`;
    });
    readout.textContent = [`${at.toFixed(at < 100 ? 1 : 0)} s`, ...rows].join("\n");
    cursor.setAttribute("d", `M${x} 0V${view.height - 40}`);
    plot.append(cursor);
    readout.hidden = false;
    const frame = figure.getBoundingClientRect();
    const beside = event.clientX - frame.left + 16;
    const fits = beside + readout.offsetWidth <= frame.width;
    readout.style.left = `${Math.max(0, fits ? beside : beside - readout.offsetWidth - 32)}px`;
    readout.style.top = `${event.clientY - frame.top + 16}px`;
  });
  plot.addEventListener("pointerleave", () => {
    readout.hidden = true;
    cursor.remove();
  });
}
