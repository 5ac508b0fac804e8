// Predictions as bars, the most likely first; with the live webcam they keep their places, so that they do not jump.

import { make, tint } from "./dom.js";
import { score, visible } from "./format.js";
import { state } from "./state.js";

function makeRow() {
  const fill = make("div", { className: "fill" });
  return make("li", {}, make("bdi", { className: "label" }), make("span", { className: "score" }), make("div", { className: "track" }, fill));
}

/** Sorts labels in the order of the cards. */
function inCardOrder(top) {
  const classes = state.classes ?? [];
  const position = new Map(classes.map(({ label }, index) => [label, index]));
  return [...top].sort((a, b) => position.get(a.label) - position.get(b.label));
}

/** Shows the labels and scores in `top`, best first; `live` if they are of the live webcam. */
export function showBars(list, top, live) {
  const all = live && top.length >= (state.classes?.length ?? 0);
  list.ariaLabel = all ? "Answers" : "Most likely answers";
  while (list.children.length < top.length) list.append(makeRow());
  while (list.children.length > top.length) list.lastChild.remove();
  const ids = new Map((state.classes ?? []).map(({ label, id }) => [label, id]));
  (all ? inCardOrder(top) : top).forEach(({ label, score: share }, index) => {
    const row = list.children[index];
    row.classList.toggle("best", label === top[0].label);
    row.querySelector(".label").textContent = visible(label);
    row.querySelector(".score").textContent = score(share);
    const fill = tint(row.querySelector(".fill"), ids.get(label) ?? 0);
    fill.style.setProperty("--share", share);
  });
}
