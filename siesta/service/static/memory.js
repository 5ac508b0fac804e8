// The section "Memory": use of the byte budget, samples of each class, accuracy before and after each sleep, drift.

import { $, make, tint } from "./dom.js";
import { bytes, count, counted, isolated, moment, percent, visible } from "./format.js";
import { plot } from "./plot.js";
import { subscribe } from "./state.js";

function segment(share, title) {
  const part = make("i", { title });
  part.style.width = `${100 * share}%`;
  return part;
}

function showBudget({ used, allowed, a_sample: each, thumbnails }, classes, samples) {
  const parts = classes.filter(({ stored }) => stored).map(({ id, label, stored }) =>
    tint(segment((stored * each) / allowed, `${isolated(label)}: ${bytes(stored * each)}`), id));
  if (thumbnails) parts.push(segment(thumbnails / allowed, `thumbnails: ${bytes(thumbnails)}`));
  $("budget-bar").replaceChildren(...parts);
  $("budget-bar").setAttribute("aria-label", `${bytes(used)} of ${bytes(allowed)} used`);
  $("memory-usage").textContent = `${bytes(used)} of ${bytes(allowed)}`;
  const room = Math.max(Math.floor((allowed - used) / each), 0);
  $("memory-summary").textContent = room
    ? `${counted(samples, "sample")} of ${count(each)} bytes${samples === 1 ? "" : " each"}${thumbnails ? `, ${bytes(thumbnails)} of thumbnails` : ""}. Room for about ${count(room)} more.`
    : "The memory is full: each new sample replaces one of the largest class.";
}

function showShares(classes) {
  const most = Math.max(...classes.map(({ stored }) => stored), 1);
  $("shares").replaceChildren(...classes.map(({ id, label, stored }) => {
    const fill = tint(make("div", { className: "fill" }), id);
    fill.style.setProperty("--share", stored / most);
    return make("li", {}, make("bdi", { className: "label" }, visible(label)), make("span", { className: "aside" }, count(stored)),
      make("div", { className: "track" }, fill));
  }));
  showScrollHint();
}

/** Lets the list fade out below while it can be scrolled further. */
function showScrollHint() {
  const list = $("shares");
  list.classList.toggle("more", list.scrollTop + list.clientHeight < list.scrollHeight - 4);
}

/** Returns number of pictures and 95 % interval behind the accuracy after a sleep. */
const range = ({ interval_after: interval, held_out: samples }) =>
  interval ? ` of ${counted(samples, "picture")} (${percent(interval[0])} to ${percent(interval[1])})` : "";

/** Plots the accuracy of every sleep: a hollow point before it, a full one after it. */
function showAccuracy(sleeps) {
  const evaluated = sleeps.filter((each) => each.accuracy_after !== null && each.accuracy_before !== null);
  $("accuracy-plot").toggleAttribute("hidden", !evaluated.length);
  $("accuracy-empty").textContent = evaluated.length ? "" : "A curve begins here with the first sleep after a class has 20 pictures.";
  if (!evaluated.length) return;
  const last = 2 * evaluated.length - 1;
  const points = evaluated.flatMap((each, at) => [
    { x: (2 * at) / last, y: each.accuracy_before, hollow: true, text: `before sleep ${each.generation}: ${percent(each.accuracy_before)}` },
    { x: (2 * at + 1) / last, y: each.accuracy_after, text: `after sleep ${each.generation}, ${moment(each.made)}: ${percent(each.accuracy_after)}${range(each)}`, label: at === evaluated.length - 1 ? percent(each.accuracy_after) : "" },
  ]);
  const ticks = [0, 0.5, 1].map((y) => ({ y, text: percent(y) }));
  const every = Math.ceil(evaluated.length / 6);
  const names = evaluated.map((each, at) => ({ x: (2 * at + 1) / last, text: `sleep ${each.generation}` })).filter((_, at) => (evaluated.length - 1 - at) % every === 0);
  plot($("accuracy-plot"), { points, ticks, names });
  $("accuracy-plot").setAttribute("aria-label", points.map(({ text }) => text).join("; "));
}

function showDrift({ drifted, relative_error: fitted, error_lately: lately }) {
  $("drift").hidden = !drifted;
  if (drifted) {
    $("drift").textContent = `Recent pictures are stored less exactly than those that the codec was fitted on (error ${percent(lately)} instead of ${percent(fitted)}). \`siesta refit\` fits a new one.`;
  }
}

export function setUpMemory() {
  let shown = null;
  $("shares").addEventListener("scroll", showScrollHint, { passive: true });
  subscribe(({ info, classes }) => {
    if (!info || !classes || info === shown) return;
    shown = info;
    showBudget(info.bytes, classes, info.samples.stored);
    showShares(classes);
    showAccuracy(info.sleeps);
    showDrift(info.codec);
  });
}
