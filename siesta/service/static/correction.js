// One click says what a picture really is, which teaches it.

import { $, attempt, make, say, tint } from "./dom.js";
import { mayTeach, state, watch } from "./state.js";
import { teach } from "./teaching.js";

const CHOICES = 8; // buttons; with more classes only the likely ones, and the field below completes names

let shown = "", likely = [], correct;

/** Takes the answer's labels, best first: with many classes they are what is offered. */
export function offer(labels) {
  const held = $("correction-choices").matches(":hover, :focus-within");
  if (!held) likely = labels; // a button under somebody's finger stays
  return showChoices(state);
}

function showChoices({ classes }) {
  $("correction").hidden = !mayTeach();
  const all = classes ?? [], few = all.length <= CHOICES;
  const offered = few ? all : likely.map((label) => all.find((each) => each.label === label)).filter(Boolean);
  const now = JSON.stringify([offered.map(({ id, label }) => [id, label]), all.length]);
  if (now === shown) return;
  shown = now;
  $("correction-choices").replaceChildren(...offered.map(choice));
  $("labels").replaceChildren(...all.map(({ label }) => make("option", { value: label })));
}

function choice({ id, label }) {
  const dot = tint(make("span", { className: "dot", ariaHidden: "true" }), id);
  const button = make("button", { type: "button" }, dot, make("span", { className: "text" }, label));
  button.setAttribute("aria-label", `It is ${label}: teach it`);
  button.addEventListener("click", () => correct(label));
  return button;
}

/** `inQuestion` gives the picture that is asked about; `afterwards` is called when it was taught. */
export function startCorrection(inQuestion, afterwards) {
  correct = (label) =>
    attempt($("correction-say"), async () => {
      const { taught, refused } = await teach([await inQuestion()], label);
      if (!taught) throw new Error(refused[0]);
      await afterwards();
      say($("correction-say"), `Taught: this is ${label}.`, "good");
    });
  watch(showChoices);
  $("correction-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const label = $("correction-name").value.trim();
    if (!label) return say($("correction-say"), "Give it a name first.", "bad");
    if (await correct(label)) $("correction-name").value = "";
  });
}
