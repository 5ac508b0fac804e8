// Dialog that asks for confirmation before something that cannot be undone.

import { $, make } from "./dom.js";

/**
 * Shows a question; resolves to null if it is cancelled, to the chosen value if there are choices, otherwise to true.
 * `choices` are pairs of value and name.
 */
export function ask({ title, text, yes, choices = [] }) {
  $("dialog-title").textContent = title;
  $("dialog-text").textContent = text;
  $("dialog-yes").textContent = yes;
  $("dialog-choice").hidden = !choices.length;
  $("dialog-select").replaceChildren(...choices.map(([value, name]) => make("option", { value }, name)));
  const dialog = $("dialog");
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    const closed = () => resolve(dialog.returnValue !== "yes" ? null : choices.length ? $("dialog-select").value : true);
    dialog.addEventListener("close", closed, { once: true });
  });
}
