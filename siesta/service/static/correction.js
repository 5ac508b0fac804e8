// Correction of a prediction: a click on the right label teaches the picture.

import { $, attempt, make, showMessage, tint } from "./dom.js";
import { isolated, visible } from "./format.js";
import { mayTeach, state, subscribe } from "./state.js";
import { teach } from "./learn_images.js";

const MAX_CHOICES = 8; // with more classes only the likely ones have buttons, and the field below completes names

let shown = "", likely = [], correct;

/** Offers the labels of a prediction, best first, if there are too many classes to offer all. */
export function offerLabels(labels) {
  const inUse = $("correction-choices").matches(":hover, :focus-within");
  if (!inUse) likely = labels; // a button that is about to be pressed does not move
  return showChoices(state);
}

function showChoices({ classes }) {
  $("correction").hidden = !mayTeach();
  const all = classes ?? [], few = all.length <= MAX_CHOICES;
  const offered = few ? all : likely.map((label) => all.find((each) => each.label === label)).filter(Boolean);
  const now = JSON.stringify([offered.map(({ id, label }) => [id, label]), all.length]);
  if (now === shown) return;
  shown = now;
  $("correction-choices").replaceChildren(...offered.map(choice));
  $("labels").replaceChildren(...all.map(({ label }) => make("option", { value: label })));
}

function choice({ id, label }) {
  const dot = tint(make("span", { className: "dot", ariaHidden: "true" }), id);
  const button = make("button", { type: "button" }, dot, make("bdi", { className: "text" }, visible(label)));
  button.setAttribute("aria-label", `It is ${isolated(label)}: teach it`);
  button.addEventListener("click", () => correct(label));
  return button;
}

/** `currentPicture` returns the picture that is asked about; `afterwards` is called when it was taught. */
export function setUpCorrection(currentPicture, afterwards) {
  correct = (label) =>
    attempt($("correction-message"), async () => {
      const { taught, refused } = await teach([await currentPicture()], label);
      if (!taught) throw new Error(refused[0]);
      await afterwards();
      showMessage($("correction-message"), `Taught: this is ${isolated(label)}.`, "good");
    });
  subscribe(showChoices);
  $("correction-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const label = $("correction-name").value.trim();
    if (!label) return showMessage($("correction-message"), "Give it a name first.", "bad");
    if (await correct(label)) $("correction-name").value = "";
  });
}
