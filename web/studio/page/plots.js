// The pictures of a run, as SVG.
import { at, draw } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM, TOP] = [320, 180, 42, 22, 8];
const short = (value) => Number(value.toPrecision(3)).toString();

// A frame with the ends of both axes, and where a point of the data lies in it.
const frame = (svg, [x0, x1], [y0, y1], label) => {
  const wide = x1 > x0 ? x1 - x0 : 1;
  const high = y1 > y0 ? y1 - y0 : 1;
  const x = (value) => LEFT + ((value - x0) / wide) * (WIDTH - LEFT - 10);
  const y = (value) => HEIGHT - BOTTOM - ((value - y0) / high) * (HEIGHT - BOTTOM - TOP);
  svg.replaceChildren(
    draw("path", { class: "axis", d: `M${LEFT} ${TOP}V${HEIGHT - BOTTOM}H${WIDTH - 10}` }),
    draw("text", { x: LEFT - 4, y: HEIGHT - BOTTOM, "text-anchor": "end" }, short(y0)),
    draw("text", { x: LEFT - 4, y: TOP + 8, "text-anchor": "end" }, short(y1)),
    draw("text", { x: LEFT, y: HEIGHT - 6 }, short(x0)),
    draw("text", { x: WIDTH - 10, y: HEIGHT - 6, "text-anchor": "end" }, short(x1)),
    draw("text", { x: (WIDTH + LEFT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, label),
  );
  return [x, y];
};

const ends = (values) => [Math.min(...values), Math.max(...values)];

export const learning = (history) => {
  // In the warm-up there is nothing to judge yet.
  const shown = history.filter((epoch) => epoch.judged !== null);
  if (shown.length === 0) { at("learning").replaceChildren(); return; }
  const [x, y] = frame(at("learning"), [shown[0].index, Math.max(shown[0].index + 1, shown.at(-1).index)], ends(shown.map((epoch) => epoch.judged)), "epoch");
  const points = shown.map((epoch) => `${x(epoch.index).toFixed(1)},${y(epoch.judged).toFixed(1)}`);
  at("learning").append(draw("polyline", { class: "line", points: points.join(" ") }),
    ...shown.filter((epoch) => epoch.best).map((epoch) => draw("circle", { class: "dot", cx: x(epoch.index), cy: y(epoch.judged), r: 3 })));
};

// Scores against cost.
export const against = (svg, points) => {
  if (points.length === 0) { svg.replaceChildren(); return; }
  const [x, y] = frame(svg, [0, Math.max(...points.map((point) => point.cost), 1e-9)], ends(points.map((point) => point.score)), "cost");
  const sorted = [...points].sort((a, b) => a.cost - b.cost);
  svg.append(draw("polyline", { class: "line", points: sorted.map((point) => `${x(point.cost).toFixed(1)},${y(point.score).toFixed(1)}`).join(" ") }),
    ...sorted.map((point) => draw("circle", { class: "dot", cx: x(point.cost), cy: y(point.score), r: 3 })));
};

// Features down, steps to the right; a row for having stopped below.
const MOST_ROWS = 40;
export const heat = (counts, features) => {
  const names = [...features, "has stopped"];
  const steps = counts.length / names.length;
  const total = counts.slice(0, names.length).reduce((sum, count) => sum + count, 0) || 1;
  const asked = (row) => { let sum = 0; for (let step = 0; step < steps; step += 1) sum += counts[step * names.length + row]; return sum; };
  // Of very many features, those that are asked for most.
  const rows = names.map((_, row) => row).sort((a, b) => asked(b) - asked(a)).slice(0, MOST_ROWS).sort((a, b) => a - b);
  const [label, side] = [150, 18];
  const wide = Math.min(side * 2, (640 - label) / steps);
  const svg = at("heat");
  const width = label + Math.max(steps * wide, 200);
  svg.setAttribute("viewBox", `0 0 ${width} ${rows.length * side + 18}`);
  // As large as its text is elsewhere, or smaller where there is no room.
  svg.style.maxWidth = `${1.2 * width}px`;
  const cells = rows.flatMap((row, line) => {
    const top = line * side;
    const name = names[row].length > 22 ? `${names[row].slice(0, 21)}…` : names[row];
    const line_cells = [draw("text", { x: label - 6, y: top + 13, "text-anchor": "end" }, name)];
    for (let step = 0; step < steps; step += 1) {
      const share = counts[step * names.length + row] / total;
      const box = { x: label + step * wide, y: top, width: wide - 1, height: side - 1 };
      line_cells.push(draw("rect", { class: "ground", ...box }));
      if (share > 0) line_cells.push(draw("rect", { class: "cell", ...box, "fill-opacity": share.toFixed(3) }, draw("title", {}, `${names[row]}, step ${step + 1}: ${(100 * share).toFixed(1)}%`)));
    }
    return line_cells;
  });
  cells.push(draw("text", { x: label, y: rows.length * side + 14 }, `step 1 to ${steps}`));
  svg.replaceChildren(...cells);
};
