// Asks before something is done that cannot be undone.

import { $, make } from "./dom.js";

/**
 * Shows a question; resolves to null if it is left, to the chosen value if there are choices, else to true.
 * `choices` are pairs of value and text.
 */
export function ask({ title, words, yes, choices = [] }) {
  $("dialog-title").textContent = title;
  $("dialog-words").textContent = words;
  $("dialog-yes").textContent = yes;
  $("dialog-choice").hidden = !choices.length;
  $("dialog-select").replaceChildren(...choices.map(([value, text]) => make("option", { value }, text)));
  const dialog = $("dialog");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = () => resolve(dialog.returnValue !== "yes" ? null : choices.length ? $("dialog-select").value : true);
    dialog.addEventListener("close", closed, { once: true });
  });
}
