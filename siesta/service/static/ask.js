// The room for questions: a picture or the live webcam, the answer as bars, and a click that corrects it.

import { UNTAUGHT, predict } from "./api.js";
import { showBars } from "./bars.js";
import { frameSide } from "./booth.js";
import { grab, leave, look } from "./camera.js";
import { offer, startCorrection } from "./correction.js";
import { $, attempt, say, unsay } from "./dom.js";
import { score } from "./format.js";
import { droppable, sendable } from "./pictures.js";
import { state, watch } from "./state.js";
import { unsure } from "./unsure.js";

const BETWEEN = 250; // milliseconds between two live questions

let live = false, picture = null, spoken = "";

const video = () => $("ask-video");

/** The answer in large letters, and for a screen reader only when it changes. */
function showAnswer(answer) {
  $("answer").hidden = false;
  $("verdict-label").textContent = answer.known ? answer.label : "unknown";
  $("verdict").classList.toggle("doubt", !answer.known);
  const [best] = answer.top;
  $("verdict-score").textContent = answer.known ? score(answer.score) : `at best ${best.label}, ${score(best.score)}`;
  if (spoken !== answer.label) $("verdict-spoken").textContent = `Answer: ${answer.label}`;
  spoken = answer.label;
  showBars($("bars"), answer.top, live);
  offer(answer.top.map(({ label }) => label));
}

/** Asks about a picture file. */
async function askAbout(file) {
  const asked = await attempt($("ask-say"), async () => {
    const answer = await predict(await sendable(file), unsure());
    say($("ask-say"));
    showAnswer(answer);
  });
  if (!asked) $("answer").hidden = true;
}

/** Shows a picture and asks about it. */
export async function askPicture(file) {
  await stopLive();
  picture = file;
  say($("correction-say"));
  const image = $("ask-picture");
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(file);
  image.hidden = false;
  $("ask-empty").hidden = true;
  await askAbout(file);
}

async function startLive() {
  if (!state.classes?.length) return say($("ask-say"), UNTAUGHT, "bad");
  say($("ask-say"));
  $("ask-picture").hidden = $("ask-empty").hidden = true;
  video().hidden = false;
  showLive(true);
  if (await attempt($("ask-say"), () => look(video()))) loop();
  else stopLive();
}

function showLive(on) {
  live = on;
  $("ask-live").setAttribute("aria-pressed", on);
  $("ask-live").textContent = on ? "Stop webcam" : "Webcam";
}

async function loop() {
  while (live) {
    const rested = new Promise((resolve) => setTimeout(resolve, BETWEEN));
    if (video().videoWidth && !document.hidden) await askAbout(await grab(video(), frameSide()));
    await rested;
  }
}

async function stopLive() {
  if (!live && video().hidden) return;
  showLive(false);
  video().hidden = true;
  $("ask-picture").hidden = picture === null;
  $("ask-empty").hidden = picture !== null;
  $("answer").hidden = true;
  await leave(video());
}

/** The picture that a correction is about. */
const inQuestion = () => (live ? grab(video(), frameSide()) : picture);

export function startAsk() {
  $("ask-live").addEventListener("click", () => (live ? stopLive() : startLive()));
  $("ask-pick").addEventListener("click", () => $("ask-file").click());
  $("ask-file").addEventListener("change", () => {
    const [file] = $("ask-file").files;
    if (file) askPicture(file);
    $("ask-file").value = "";
  });
  droppable($("ask"), ([file]) => {
    if (file) askPicture(file);
    else say($("ask-say"), "There was no picture in that: use a file, not a link.", "bad");
  });
  const askAgain = () => live || (picture && askAbout(picture));
  startCorrection(inQuestion, askAgain);
  unsure.onChange(askAgain);
  let generation = null;
  watch(({ info, classes }) => {
    if (classes?.length) unsay($("ask-say"), UNTAUGHT);
    if (generation !== null && info.generation !== generation) askAgain(); // it slept: it may know better now
    generation = info?.generation ?? null;
  });
}
