// The most likely answers as bars; rows stay where they are, so that live answers do not jump.

import { make, tint } from "./dom.js";
import { percent } from "./format.js";
import { state } from "./state.js";

function makeRow() {
  const fill = make("div", { className: "fill" });
  return make("li", {}, make("span", { className: "label" }), make("span", { className: "score" }), make("div", { className: "track" }, fill));
}

/** Where every class has a bar they stand in the order of the cards, else best first. */
function ordered(top) {
  const classes = state.classes ?? [];
  if (top.length < classes.length) return top;
  const place = new Map(classes.map(({ label }, at) => [label, at]));
  return [...top].sort((a, b) => place.get(a.label) - place.get(b.label));
}

export function showBars(list, top) {
  while (list.children.length < top.length) list.append(makeRow());
  while (list.children.length > top.length) list.lastChild.remove();
  const ids = new Map((state.classes ?? []).map(({ label, id }) => [label, id]));
  ordered(top).forEach(({ label, score }, at) => {
    const row = list.children[at];
    row.classList.toggle("best", label === top[0].label);
    row.querySelector(".label").textContent = label;
    row.querySelector(".score").textContent = percent(score);
    const fill = tint(row.querySelector(".fill"), ids.get(label) ?? 0);
    fill.style.setProperty("--share", score);
  });
}
