// The room that shows what is stored: bytes of the budget, samples a class, accuracy from sleep to sleep, drift.

import { $, make, tint } from "./dom.js";
import { bytes, count, counted, moment, percent } from "./format.js";
import { plot } from "./plot.js";
import { watch } from "./state.js";

function segment(share, words) {
  const part = make("i", { title: words });
  part.style.width = `${100 * share}%`;
  return part;
}

function showBudget({ used, allowed, a_sample: each, thumbnails }, classes, samples) {
  const parts = classes.filter(({ stored }) => stored).map(({ id, label, stored }) =>
    tint(segment((stored * each) / allowed, `${label}: ${bytes(stored * each)}`), id));
  if (thumbnails) parts.push(segment(thumbnails / allowed, `small pictures: ${bytes(thumbnails)}`));
  $("budget-bar").replaceChildren(...parts);
  $("budget-bar").setAttribute("aria-label", `${bytes(used)} of ${bytes(allowed)} used`);
  $("memory-sum").textContent = `${bytes(used)} of ${bytes(allowed)}`;
  const room = Math.max(Math.floor((allowed - used) / each), 0);
  $("memory-words").textContent = room
    ? `${counted(samples, "sample")} of ${count(each)} bytes${samples === 1 ? "" : " each"}${thumbnails ? `, ${bytes(thumbnails)} of small pictures` : ""}. Room for about ${count(room)} more.`
    : "The memory is full: for each new sample one of the largest class goes.";
}

function showShares(classes) {
  const most = Math.max(...classes.map(({ stored }) => stored), 1);
  $("shares").replaceChildren(...classes.map(({ id, label, stored }) => {
    const fill = tint(make("div", { className: "fill" }), id);
    fill.style.setProperty("--share", stored / most);
    return make("li", {}, make("span", { className: "label" }, label), make("span", { className: "aside" }, count(stored)),
      make("div", { className: "track" }, fill));
  }));
  hintMore();
}

/** A list that fades out below has more to scroll to. */
function hintMore() {
  const list = $("shares");
  list.classList.toggle("more", list.scrollTop + list.clientHeight < list.scrollHeight - 4);
}

/** Hollow before a sleep, full after it; one sleep beside the other. */
function showAccuracy(sleeps) {
  const judged = sleeps.filter((each) => each.accuracy_after !== null && each.accuracy_before !== null);
  $("accuracy-plot").toggleAttribute("hidden", !judged.length);
  $("accuracy-empty").textContent = judged.length ? "" : "A curve begins here with the first sleep after a class has 20 pictures.";
  if (!judged.length) return;
  const last = 2 * judged.length - 1;
  const points = judged.flatMap((each, at) => [
    { x: (2 * at) / last, y: each.accuracy_before, hollow: true, words: `before sleep ${each.generation}: ${percent(each.accuracy_before)}` },
    { x: (2 * at + 1) / last, y: each.accuracy_after, words: `after sleep ${each.generation}, ${moment(each.made)}: ${percent(each.accuracy_after)}`, label: at === judged.length - 1 ? percent(each.accuracy_after) : "" },
  ]);
  const ticks = [0, 0.5, 1].map((y) => ({ y, words: percent(y) }));
  const every = Math.ceil(judged.length / 6);
  const names = judged.map((each, at) => ({ x: (2 * at + 1) / last, words: `sleep ${each.generation}` })).filter((_, at) => (judged.length - 1 - at) % every === 0);
  plot($("accuracy-plot"), { points, ticks, names });
  $("accuracy-plot").setAttribute("aria-label", points.map(({ words }) => words).join("; "));
}

function showDrift({ drifted, relative_error: fitted, error_lately: lately }) {
  $("drift").hidden = !drifted;
  if (drifted) {
    $("drift").textContent = `What is taught lately is stored less exactly than what its codec was made for (error ${percent(lately)} instead of ${percent(fitted)}). \`siesta refit\` makes a new one.`;
  }
}

export function startMemory() {
  let shown = null;
  $("shares").addEventListener("scroll", hintMore, { passive: true });
  watch(({ info, classes }) => {
    if (!info || !classes || info === shown) return;
    shown = info;
    showBudget(info.bytes, classes, info.samples.stored);
    showShares(classes);
    showAccuracy(info.sleeps);
    showDrift(info.codec);
  });
}
