// Progress of a sleep, drawn as a lunar phase.

import { shape } from "./plot.js";

const CENTRE = 100, RADIUS = 74, MIN_LIT = 0.04; // share of the disc that is always lit
const CRATERS = [[78, 72, 13], [120, 96, 9], [92, 128, 16], [132, 132, 6], [118, 60, 6], [66, 104, 6]];

/** Returns the outline of the lit part, which grows from the right edge to the whole disc. */
function litOutline(fraction) {
  const top = CENTRE - RADIUS, bottom = CENTRE + RADIUS;
  const inner = Math.abs(1 - 2 * fraction) * RADIUS;
  const sweep = fraction < 0.5 ? 0 : 1;
  return `M${CENTRE} ${top}A${RADIUS} ${RADIUS} 0 0 1 ${CENTRE} ${bottom}A${inner} ${RADIUS} 0 0 ${sweep} ${CENTRE} ${top}Z`;
}

/** Draws the moon into an <svg role=progressbar>; returns a function that sets its fraction and description. */
export function makeMoon(svg) {
  const lit = shape("path", { class: "lit" });
  svg.replaceChildren(
    shape("radialGradient", { id: "moon-glow" },
      shape("stop", { offset: 0.5, "stop-opacity": 0.5 }), shape("stop", { offset: 1, "stop-opacity": 0 })),
    shape("circle", { class: "glow", cx: CENTRE, cy: CENTRE, r: 124 }),
    shape("circle", { class: "dark", cx: CENTRE, cy: CENTRE, r: RADIUS }),
    lit,
    ...CRATERS.map(([cx, cy, r]) => shape("circle", { class: "crater", cx, cy, r })),
  );
  return (fraction, description) => {
    const share = Math.min(Math.max(fraction, 0), 1);
    lit.setAttribute("d", litOutline(Math.max(share, MIN_LIT)));
    svg.setAttribute("aria-valuenow", Math.round(100 * share));
    svg.setAttribute("aria-valuetext", description);
  };
}
