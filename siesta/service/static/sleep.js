// The room for sleep: how long, by which policy, a moon that fills meanwhile, and waking up.

import { beginSleep, wakeUp } from "./api.js";
import { $, attempt, busy, make, say, unsay } from "./dom.js";
import { count, duration } from "./format.js";
import { makeMoon } from "./moon.js";
import { plot } from "./plot.js";
import { change, mayTeach, state, watch } from "./state.js";

const BUDGETS = [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 28800]; // seconds
const NOTHING = "There is nothing to rehearse yet: teach something first.";
const CURVE = 300; // points of the loss that are drawn

let losses = [], night = null, falling = false, pressed = false, told, fill;

function showBudget() {
  const words = duration(BUDGETS[$("budget").value]);
  $("budget-value").textContent = words;
  $("budget").setAttribute("aria-valuetext", words);
}

function showPolicies({ info }) {
  if (!info || $("policy").options.length) return;
  const nice = (name) => name.replaceAll("_", " ");
  $("policy").replaceChildren(...info.policies.map(({ name }) => make("option", { value: name }, nice(name))));
  $("policy").value = info.default_policy;
  showPolicyWords();
}

function showPolicyWords() {
  const chosen = state.info.policies.find(({ name }) => name === $("policy").value);
  $("policy-words").textContent = chosen?.words ?? "";
}

/** What it is doing, in one short line. */
function stateWords({ sleep, classes }) {
  if (sleep.state === "waiting" || sleep.state === "paused") return sleep.words;
  if (sleep.running ? !sleep.progress : falling) return "Falling asleep…"; // progress of the sleep before does not count
  if (sleep.running) return "Dreaming of what it was taught";
  if (!classes?.length) return "Nothing to dream of yet: teach me something first.";
  return "Awake, and learning as you teach";
}

function showSleep(now) {
  const { sleep } = now, asleep = sleep.running || falling;
  const progress = sleep.running ? sleep.progress : null;
  if ($(asleep ? "sleep-form" : "sleep-controls").contains(document.activeElement)) pressed = true; // it goes away now
  $("sleep").classList.toggle("asleep", asleep);
  $("sleep-words").textContent = stateWords(now);
  $("sleep-form").hidden = asleep || !mayTeach();
  $("sleep-controls").hidden = !asleep || !mayTeach();
  $("sleep-wake").disabled = !sleep.running;
  $("sleep-figures").hidden = !asleep;
  fill(progress ? progress.fraction : !asleep && sleep.state === "done" && sleep.report ? 1 : 0, stateWords(now));
  follow(sleep, progress);
  $("sleep-left").textContent = progress ? duration(progress.seconds_left) : "–";
  $("sleep-loss").textContent = progress ? progress.loss.toFixed(2) : "–";
  $("sleep-updates").textContent = progress ? count(progress.updates) : "–";
  keepFocus();
  tell(sleep);
  if (now.classes?.length) unsay($("sleep-say"), NOTHING);
}

/** A sleep that begins or ends takes old words away, one that failed is told of once: what is said later stays. */
function tell({ state: how, words, started, running }) {
  const now = `${started} ${running}`, failed = how === "failed" || how === "killed";
  if (now === told) return;
  told = now;
  say($("sleep-say"), failed ? `The last sleep: ${words}.` : "", failed ? "bad" : "");
}

/** Who was at the button that went away, by key, finds the one that came. */
function keepFocus() {
  const at = document.activeElement;
  if (!pressed || (at !== document.body && at.checkVisibility())) return;
  const next = $("sleep-form").hidden ? $("sleep-wake") : $("sleep-go");
  next.focus({ preventScroll: true });
  if (document.activeElement === next) pressed = false;
}

/** Keeps the losses of the sleep that runs, as far as this page saw it, and draws them. */
function follow(sleep, progress) {
  if (sleep.started !== night) [losses, night] = [[], sleep.started];
  if (progress && progress.updates !== losses.at(-1)?.updates) losses.push(progress);
  $("loss-figure").hidden = losses.length < 2 || !sleep.running;
  if ($("loss-figure").hidden) return;
  const every = Math.ceil(losses.length / CURVE), kept = losses.filter((_, at) => at % every === 0);
  const most = Math.max(...kept.map(({ loss }) => loss), 1e-6);
  const points = kept.map(({ fraction, loss }) => ({ x: fraction, y: loss / most }));
  plot($("loss-plot"), { points, ticks: [{ y: 0, words: "0" }, { y: 1, words: most.toFixed(1) }], height: 120, dots: false });
}

async function fallAsleep(event) {
  event.preventDefault();
  if (!state.classes?.length) return say($("sleep-say"), NOTHING, "bad");
  say($("sleep-say"));
  falling = pressed = true;
  showSleep(state);
  await attempt($("sleep-say"), async () => change({ sleep: await beginSleep(BUDGETS[$("budget").value], $("policy").value) }));
  falling = false;
  showSleep(state);
}

export function startSleep() {
  fill = makeMoon($("moon"));
  $("budget").max = BUDGETS.length - 1;
  $("budget").value = BUDGETS.indexOf(30);
  showBudget();
  $("budget").addEventListener("input", showBudget);
  $("policy").addEventListener("change", showPolicyWords);
  $("sleep-form").addEventListener("submit", fallAsleep);
  $("sleep-wake").addEventListener("click", () =>
    busy($("sleep-wake"), () => attempt($("sleep-say"), async () => {
      pressed = true;
      await wakeUp();
      say($("sleep-say"), "Waking up: it finishes the batch it is in, and keeps what it has.");
    })),
  );
  watch(showPolicies);
  watch(showSleep);
}
