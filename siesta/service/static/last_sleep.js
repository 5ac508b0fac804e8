// Result of the last sleep, and the generations that can be activated.

import { useGeneration } from "./api.js";
import { $, attempt, whileDisabled, make, showMessage } from "./dom.js";
import { counted, duration, isolated, moment, percent, pictures } from "./format.js";
import { mayTeach, subscribe } from "./state.js";

// why a sleep without a budget ended
const ENDINGS = {
  no_gain: "; it ended when held-out pictures stopped gaining",
  ceiling: "; it ended at its ceiling, and held-out pictures still gained",
  passes: "; too few pictures are held out to end it by them",
};

function showLastSleep({ info, sleep }) {
  const last = info?.sleeps.at(-1);
  if (!last || sleep.running) return $("last-sleep").replaceChildren();
  const lines = [make("h3", {}, `Last sleep, ${moment(last.made)}`), accuracyChange(last)];
  const rehearsed = `${counted(last.updates, "rehearsal")} of ${pictures(last.samples)} in ${duration(last.seconds)}`;
  const loss = `loss ${last.loss_before.toFixed(2)} → ${last.loss_after.toFixed(2)}`;
  const ending = last.interrupted ? "; woken early" : ENDINGS[last.ended] ?? "";
  lines.push(make("p", { className: "aside" }, `${rehearsed}; ${loss}${ending}.`));
  if (!last.used) lines.push(make("p", { className: "warning" }, "It made the accuracy worse, so its weights are kept but not used: the old ones stay active."));
  $("last-sleep").replaceChildren(...lines);
}

/** Returns the accuracy before and after a sleep, or why there is none. */
function accuracyChange({ accuracy_before: before, accuracy_after: after, interval_after: interval, held_out: samples, optimistic, judge }) {
  if (after === null || before === null) {
    return make("p", {}, "Accuracy is measured on held-out pictures, which a class has from its 20th on. No class had that many at that time.");
  }
  const rise = Math.round(100 * (after - before));
  const change = make("span", { className: rise < 0 ? "worse" : rise ? "better" : "same" }, rise ? `${rise > 0 ? "+" : "−"}${counted(Math.abs(rise), "point")}` : "as before");
  const numbers = make("p", { className: "rise" }, make("span", { className: "from" }, percent(before)), make("span", {}, "→"), make("span", {}, percent(after)), change);
  const certainty = interval ? `, so between ${percent(interval[0])} and ${percent(interval[1])} with 95 % confidence` : "";
  const doubt = optimistic ? "; optimistic, because they also decided about these weights" : "";
  return make("div", {}, numbers, make("p", { className: "aside" }, `accuracy on ${pictures(samples)} ${judge ? `of the folder ${isolated(judge)}` : "it never rehearses"}${certainty}${doubt}`));
}

function showGenerations({ generations, sleep }) {
  $("generations-fold").hidden = generations.length < 2;
  $("generations").replaceChildren(...[...generations].reverse().map((each) => row(each, sleep.running)));
}

function row({ number, made, in_use: used, report }, asleep) {
  const right = report?.accuracy_after;
  const name = make("div", {}, make("b", {}, number ? `After sleep ${number}` : "Before any sleep"));
  const [low, high] = report?.interval_after ?? [];
  const range = low === undefined ? "" : ` of ${pictures(report.held_out)}, ${percent(low)} to ${percent(high)}`;
  const facts = [moment(made), right === null || right === undefined ? null : `${percent(right)} right${range}`];
  name.append(make("p", { className: "aside" }, facts.filter(Boolean).join(", ")));
  const button = make("button", { type: "button", disabled: asleep, hidden: !mayTeach() }, "Go back");
  button.setAttribute("aria-label", number ? `Answer as after sleep ${number}` : "Answer as before any sleep");
  button.addEventListener("click", () => whileDisabled(button, () => use(number)));
  const item = make("li", {}, name, used ? make("span", { className: "now" }, "answers now") : button);
  item.classList.toggle("used", used);
  return item;
}

const use = (number) =>
  attempt($("generations-message"), async () => {
    await useGeneration(number);
    showMessage($("generations-message"), `It answers as ${number ? `after sleep ${number}` : "before any sleep"} now.`, "good");
  });

/** Calls `show` only when its parts of the state have changed, so that a focused button is not replaced. */
function whenChanged(show, parts) {
  let before = "";
  subscribe((state) => {
    const now = JSON.stringify(parts(state));
    if (now !== before) show(state);
    before = now;
  });
}

export function setUpLastSleep() {
  whenChanged(showLastSleep, ({ info, sleep }) => [info?.sleeps, sleep.running]);
  whenChanged(showGenerations, ({ generations, sleep, info }) => [generations, sleep.running, info?.scopes]);
}
