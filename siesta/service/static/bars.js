// Answers as bars: the most likely first, but live they stay where they are, so that they do not jump.

import { make, tint } from "./dom.js";
import { score } from "./format.js";
import { state } from "./state.js";

function makeRow() {
  const fill = make("div", { className: "fill" });
  return make("li", {}, make("span", { className: "label" }), make("span", { className: "score" }), make("div", { className: "track" }, fill));
}

/** Live, where every class has a bar, they stand in the order of the cards. */
function still(top) {
  const classes = state.classes ?? [];
  const place = new Map(classes.map(({ label }, at) => [label, at]));
  return [...top].sort((a, b) => place.get(a.label) - place.get(b.label));
}

/** `top` is the answers, best first. */
export function showBars(list, top, live) {
  const all = live && top.length >= (state.classes?.length ?? 0);
  list.ariaLabel = all ? "Answers" : "Most likely answers";
  while (list.children.length < top.length) list.append(makeRow());
  while (list.children.length > top.length) list.lastChild.remove();
  const ids = new Map((state.classes ?? []).map(({ label, id }) => [label, id]));
  (all ? still(top) : top).forEach(({ label, score: share }, at) => {
    const row = list.children[at];
    row.classList.toggle("best", label === top[0].label);
    row.querySelector(".label").textContent = label;
    row.querySelector(".score").textContent = score(share);
    const fill = tint(row.querySelector(".fill"), ids.get(label) ?? 0);
    fill.style.setProperty("--share", share);
  });
}
