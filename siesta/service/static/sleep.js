// The section "Sleep": its budget and policy, its progress, and a button to end it.

import { beginSleep, wakeUp } from "./api.js";
import { $, attempt, whileDisabled, make, showMessage, clearMessage } from "./dom.js";
import { count, duration, sentence } from "./format.js";
import { makeMoon } from "./moon.js";
import { plot } from "./plot.js";
import { change, mayTeach, state, subscribe } from "./state.js";

const BUDGETS = [null, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 28800]; // seconds; null until held-out pictures stop gaining
const NOTHING_TO_REHEARSE = "There is nothing to rehearse yet: teach something first.";
const MAX_POINTS = 300; // of the loss curve

let losses = []; // progress of the present sleep, as far as this page has seen it
let sleepStarted = null; // start of the sleep that `losses` belong to
let starting = false; // whether a sleep was requested and not confirmed yet
let moveFocus = false; // whether the focused button disappears and the focus has to move
let lastMessageKey, setMoon;

function showBudget() {
  const seconds = BUDGETS[$("budget").value], text = seconds === null ? "until done" : `for ${duration(seconds)}`;
  $("budget-value").textContent = text;
  $("budget").setAttribute("aria-valuetext", text);
}

function showPolicies({ info }) {
  if (!info || $("policy").options.length) return;
  const readable = (name) => name.replaceAll("_", " ");
  $("policy").replaceChildren(...info.policies.map(({ name }) => make("option", { value: name }, readable(name))));
  $("policy").value = info.default_policy;
  showPolicyDescription();
}

function showPolicyDescription() {
  const chosen = state.info.policies.find(({ name }) => name === $("policy").value);
  $("policy-description").textContent = chosen?.words ?? "";
}

/** Says whether a sleep is due, and about how long one takes that ends by itself. */
function showNeed({ info, classes }) {
  $("sleep-need").textContent = info && classes?.length ? sentence(`Sleep is ${info.sleep_need.words}`) : "";
  $("sleep-need").classList.toggle("due", Boolean(info?.sleep_need.due));
}

/** Returns what the learner is doing in one short line. */
function stateText({ sleep, classes }) {
  if (sleep.state === "waiting" || sleep.state === "paused") return sleep.words;
  if (sleep.running ? !sleep.progress : starting) return "Falling asleep…"; // not the progress of the previous sleep
  if (sleep.running) return "Rehearsing what it was taught";
  if (!classes?.length) return "Nothing to rehearse yet: teach me something first.";
  return "Awake, and learning as you teach";
}

function showSleep(now) {
  const { sleep } = now, asleep = sleep.running || starting;
  const progress = sleep.running ? sleep.progress : null;
  if ($(asleep ? "sleep-form" : "sleep-controls").contains(document.activeElement)) moveFocus = true; // the focused element is hidden below
  $("sleep").classList.toggle("asleep", asleep);
  $("sleep-state-text").textContent = stateText(now);
  $("sleep-form").hidden = asleep || !mayTeach();
  $("sleep-controls").hidden = !asleep || !mayTeach();
  $("sleep-wake").disabled = !sleep.running;
  $("sleep-figures").hidden = !asleep;
  setMoon(progress ? progress.fraction : !asleep && sleep.state === "done" && sleep.report ? 1 : 0, stateText(now));
  showLoss(sleep, progress);
  $("sleep-left").textContent = progress ? `${progress.round ? "≤ " : ""}${duration(progress.seconds_left)}` : "–";
  $("sleep-loss").textContent = progress ? progress.loss.toFixed(2) : "–";
  $("sleep-updates").textContent = progress ? count(progress.updates) : "–";
  keepFocus();
  showFailure(sleep);
  if (now.classes?.length) clearMessage($("sleep-message"), NOTHING_TO_REHEARSE);
}

/** Removes the message when a sleep begins or ends, and shows a failure once, so that later messages stay. */
function showFailure({ state: sleepState, words, started, running }) {
  const key = `${started} ${running}`, failed = sleepState === "failed" || sleepState === "killed";
  if (key === lastMessageKey) return;
  lastMessageKey = key;
  showMessage($("sleep-message"), failed ? `The last sleep: ${words}.` : "", failed ? "bad" : "");
}

/** Moves the focus from a button that was hidden to the one that replaces it. */
function keepFocus() {
  const at = document.activeElement;
  if (!moveFocus || (at !== document.body && at.checkVisibility())) return;
  const next = $("sleep-form").hidden ? $("sleep-wake") : $("sleep-go");
  next.focus({ preventScroll: true });
  if (document.activeElement === next) moveFocus = false;
}

/** Plots the loss of the present sleep. */
function showLoss(sleep, progress) {
  if (sleep.started !== sleepStarted) [losses, sleepStarted] = [[], sleep.started];
  if (progress && progress.updates !== losses.at(-1)?.updates) losses.push(progress);
  $("loss-figure").hidden = losses.length < 2 || !sleep.running;
  if ($("loss-figure").hidden) return;
  const every = Math.ceil(losses.length / MAX_POINTS), kept = losses.filter((_, at) => at % every === 0);
  const most = Math.max(...kept.map(({ loss }) => loss), 1e-6);
  const points = kept.map(({ fraction, loss }) => ({ x: fraction, y: loss / most }));
  plot($("loss-plot"), { points, ticks: [{ y: 0, text: "0" }, { y: 1, text: most.toFixed(1) }], height: 120, dots: false });
}

async function requestSleep(event) {
  event.preventDefault();
  if (!state.classes?.length) return showMessage($("sleep-message"), NOTHING_TO_REHEARSE, "bad");
  showMessage($("sleep-message"));
  starting = moveFocus = true;
  showSleep(state);
  await attempt($("sleep-message"), async () => change({ sleep: await beginSleep(BUDGETS[$("budget").value], $("policy").value) }));
  starting = false;
  showSleep(state);
}

export function setUpSleep() {
  setMoon = makeMoon($("moon"));
  $("budget").max = BUDGETS.length - 1;
  $("budget").value = 0;
  showBudget();
  $("budget").addEventListener("input", showBudget);
  $("policy").addEventListener("change", showPolicyDescription);
  $("sleep-form").addEventListener("submit", requestSleep);
  $("sleep-wake").addEventListener("click", () =>
    whileDisabled($("sleep-wake"), () => attempt($("sleep-message"), async () => {
      moveFocus = true;
      await wakeUp();
      showMessage($("sleep-message"), "Waking up: it finishes the batch it is in, and keeps what it has.");
    })),
  );
  subscribe(showPolicies);
  subscribe(showNeed);
  subscribe(showSleep);
}
