// Line plot as SVG: a grid, one curve, and points with a text that is shown on hover.

const SVG = "http://www.w3.org/2000/svg";

export function shape(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/**
 * Draws into an <svg>.
 * `points` are {x, y, text, hollow, label} with x and y from 0 to 1, `ticks` {y, text}, and `names` {x, text} are below.
 */
export function plot(svg, { points, ticks = [], names = [], width = 360, height = 150, dots = true }) {
  const left = ticks.length ? 44 : 4, right = width - 24, top = 14, bottom = height - (names.length ? 24 : 6);
  const at = ({ x = 0, y = 0 }) => [left + x * (right - left), bottom - y * (bottom - top)];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  for (const tick of ticks) {
    const [, y] = at(tick);
    svg.append(shape("line", { class: "grid", x1: left, x2: right, y1: y, y2: y }));
    svg.append(shape("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, tick.text));
  }
  for (const name of names) {
    const [x] = at(name);
    svg.append(shape("text", { x, y: height - 4, "text-anchor": "middle" }, name.text));
  }
  svg.append(shape("polyline", { class: "curve", points: points.map((point) => at(point).join(",")).join(" ") }));
  if (dots) for (const point of points) svg.append(...dot(point, at(point), top));
}

function dot(point, [x, y], top) {
  const circle = shape("circle", { class: point.hollow ? "point hollow" : "point", cx: x, cy: y, r: point.hollow ? 4 : 5 });
  circle.append(shape("title", {}, point.text));
  if (!point.label) return [circle];
  const above = y - 12 < top ? y + 20 : y - 12;
  return [circle, shape("text", { class: "value", x, y: above, "text-anchor": "middle" }, point.label)];
}
