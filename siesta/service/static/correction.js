// One click says what a picture really is, which teaches it.

import { $, attempt, make, say, tint } from "./dom.js";
import { mayTeach, watch } from "./state.js";
import { teach } from "./teaching.js";

const CHOICES = 8; // buttons; with more classes the field below them completes names

let shown = "";

function showChoices({ classes }, correct) {
  $("correction").hidden = !mayTeach();
  const offered = (classes ?? []).slice(0, CHOICES);
  const known = JSON.stringify(classes?.map(({ id, label }) => [id, label]) ?? []);
  if (known === shown) return; // a button under somebody's finger stays
  shown = known;
  $("correction-choices").replaceChildren(...offered.map((each) => choice(each, correct)));
  $("labels").replaceChildren(...(classes ?? []).map(({ label }) => make("option", { value: label })));
}

function choice({ id, label }, correct) {
  const dot = tint(make("span", { className: "dot", ariaHidden: "true" }), id);
  const button = make("button", { type: "button" }, dot, make("span", { className: "text" }, label));
  button.setAttribute("aria-label", `It is ${label}: teach it`);
  button.addEventListener("click", () => correct(label));
  return button;
}

/** `inQuestion` gives the picture that is asked about; `afterwards` is called when it was taught. */
export function startCorrection(inQuestion, afterwards) {
  const correct = (label) =>
    attempt($("correction-say"), async () => {
      const { taught, refused } = await teach([await inQuestion()], label);
      if (!taught) throw new Error(refused[0]);
      await afterwards();
      say($("correction-say"), `Taught: this is ${label}.`, "good");
    });
  watch((state) => showChoices(state, correct));
  $("correction-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const label = $("correction-name").value.trim();
    if (!label) return say($("correction-say"), "Give it a name first.", "bad");
    if (await correct(label)) $("correction-name").value = "";
  });
}
