// What the last sleep brought, and the weights of earlier ones to go back to.

import { useGeneration } from "./api.js";
import { $, attempt, busy, make, say } from "./dom.js";
import { counted, duration, moment, percent, pictures } from "./format.js";
import { mayTeach, watch } from "./state.js";

function showMorning({ info, sleep }) {
  const last = info?.sleeps.at(-1);
  if (!last || sleep.running) return $("morning").replaceChildren();
  const lines = [make("h3", {}, `Last sleep, ${moment(last.made)}`), judged(last)];
  const rehearsed = `${counted(last.updates, "rehearsal")} of ${pictures(last.samples)} in ${duration(last.seconds)}`;
  const loss = `loss ${last.loss_before.toFixed(2)} → ${last.loss_after.toFixed(2)}`;
  lines.push(make("p", { className: "aside" }, `${rehearsed}; ${loss}${last.interrupted ? "; woken early" : ""}.`));
  if (!last.used) lines.push(make("p", { className: "warning" }, "It did worse, so its weights are kept but not used: the old ones answer."));
  $("morning").replaceChildren(...lines);
}

/** Accuracy before and after, or why there is none. */
function judged({ accuracy_before: before, accuracy_after: after, held_out: asked }) {
  if (after === null || before === null) {
    return make("p", {}, "From its 20th picture on, a class keeps a few aside to judge sleep by. None had that many when it slept.");
  }
  const rise = Math.round(100 * (after - before));
  const change = make("span", { className: rise < 0 ? "worse" : rise ? "better" : "same" }, rise ? `${rise > 0 ? "+" : "−"}${counted(Math.abs(rise), "point")}` : "as before");
  const numbers = make("p", { className: "rise" }, make("span", { className: "from" }, percent(before)), make("span", {}, "→"), make("span", {}, percent(after)), change);
  return make("div", {}, numbers, make("p", { className: "aside" }, `right of ${pictures(asked)} it never rehearses`));
}

function showGenerations({ generations, sleep }) {
  $("generations-fold").hidden = generations.length < 2;
  $("generations").replaceChildren(...[...generations].reverse().map((each) => row(each, sleep.running)));
}

function row({ number, made, in_use: used, report }, asleep) {
  const right = report?.accuracy_after;
  const name = make("div", {}, make("b", {}, number ? `After sleep ${number}` : "Before any sleep"));
  const facts = [moment(made), right === null || right === undefined ? null : `${percent(right)} right`];
  name.append(make("p", { className: "aside" }, facts.filter(Boolean).join(", ")));
  const button = make("button", { type: "button", disabled: asleep, hidden: !mayTeach() }, "Go back");
  button.setAttribute("aria-label", number ? `Answer as after sleep ${number}` : "Answer as before any sleep");
  button.addEventListener("click", () => busy(button, () => use(number)));
  const item = make("li", {}, name, used ? make("span", { className: "now" }, "answers now") : button);
  item.classList.toggle("used", used);
  return item;
}

const use = (number) =>
  attempt($("generations-say"), async () => {
    await useGeneration(number);
    say($("generations-say"), `It answers as ${number ? `after sleep ${number}` : "before any sleep"} now.`, "good");
  });

/** Calls `show` only when what it shows has changed, so that a focused button is not replaced four times a second. */
function whenChanged(show, parts) {
  let before = "";
  watch((state) => {
    const now = JSON.stringify(parts(state));
    if (now !== before) show(state);
    before = now;
  });
}

export function startMorning() {
  whenChanged(showMorning, ({ info, sleep }) => [info?.sleeps, sleep.running]);
  whenChanged(showGenerations, ({ generations, sleep, info }) => [generations, sleep.running, info?.scopes]);
}
