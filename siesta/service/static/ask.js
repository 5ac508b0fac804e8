// The section "Ask": a picture or the live webcam, the prediction as bars, and its correction.

import { NOTHING_LEARNED, predict } from "./api.js";
import { showBars } from "./bars.js";
import { frameSide } from "./card_webcam.js";
import { captureFrame, stopCamera, startCamera } from "./camera.js";
import { offerLabels, setUpCorrection } from "./correction.js";
import { offerRejection, setUpRejection } from "./rejection.js";
import { $, attempt, showMessage, clearMessage } from "./dom.js";
import { isolated, score, visible } from "./format.js";
import { onDrop, toUploadable } from "./image_files.js";
import { state, subscribe } from "./state.js";
import { thresholdOptions } from "./threshold.js";

const PREDICT_INTERVAL = 250; // milliseconds between two predictions of the live webcam

let live = false, picture = null, announced = "";

const video = () => $("ask-video");

/** Shows a prediction; screen readers are told only when its label changes. */
function showAnswer(answer) {
  $("answer").hidden = false;
  $("verdict-label").textContent = answer.known ? visible(answer.label) : "unknown";
  $("verdict").classList.toggle("doubt", !answer.known);
  const [best] = answer.top;
  $("verdict-score").textContent = answer.known ? score(answer.score) : `familiarity ${score(answer.familiarity)}; at best ${isolated(best.label)}, ${score(best.score)}`;
  if (announced !== answer.label) $("verdict-spoken").textContent = `Answer: ${isolated(answer.label)}`;
  announced = answer.label;
  showBars($("bars"), answer.top, live);
  offerLabels(answer.top.map(({ label }) => label));
  offerRejection(answer.top);
}

/** Predicts the label of a picture file. */
async function askAbout(file) {
  const succeeded = await attempt($("ask-message"), async () => {
    const answer = await predict(await toUploadable(file), thresholdOptions());
    showMessage($("ask-message"));
    showAnswer(answer);
  });
  if (!succeeded) $("answer").hidden = true;
}

/** Shows a picture file and predicts its label. */
export async function askAboutFile(file) {
  await stopLive();
  picture = file;
  showMessage($("correction-message"));
  const image = $("ask-picture");
  URL.revokeObjectURL(image.src);
  image.src = URL.createObjectURL(file);
  image.hidden = false;
  $("ask-empty").hidden = true;
  await askAbout(file);
}

async function startLive() {
  if (!state.classes?.length) return showMessage($("ask-message"), NOTHING_LEARNED, "bad");
  showMessage($("ask-message"));
  $("ask-picture").hidden = $("ask-empty").hidden = true;
  video().hidden = false;
  showLive(true);
  if (await attempt($("ask-message"), () => startCamera(video()))) loop();
  else stopLive();
}

function showLive(on) {
  live = on;
  $("ask-live").setAttribute("aria-pressed", on);
  $("ask-live").textContent = on ? "Stop webcam" : "Webcam";
}

async function loop() {
  while (live) {
    const pause = new Promise((resolve) => setTimeout(resolve, PREDICT_INTERVAL));
    if (video().videoWidth && !document.hidden) await askAbout(await captureFrame(video(), frameSide()));
    await pause;
  }
}

async function stopLive() {
  if (!live && video().hidden) return;
  showLive(false);
  video().hidden = true;
  $("ask-picture").hidden = picture === null;
  $("ask-empty").hidden = picture !== null;
  $("answer").hidden = true;
  await stopCamera(video());
}

/** The picture that a correction is about: the chosen file, or the present frame of the webcam. */
const currentPicture = () => (live ? captureFrame(video(), frameSide()) : picture);

export function setUpAsk() {
  $("ask-live").addEventListener("click", () => (live ? stopLive() : startLive()));
  $("ask-pick").addEventListener("click", () => $("ask-file").click());
  $("ask-file").addEventListener("change", () => {
    const [file] = $("ask-file").files;
    if (file) askAboutFile(file);
    $("ask-file").value = "";
  });
  onDrop($("ask"), ([file]) => {
    if (file) askAboutFile(file);
    else showMessage($("ask-message"), "There was no picture in that: use a file, not a link.", "bad");
  });
  const askAgain = () => live || (picture && askAbout(picture));
  setUpCorrection(currentPicture, askAgain);
  setUpRejection(async () => toUploadable(await currentPicture()), askAgain);
  thresholdOptions.onChange(askAgain);
  let generation = null;
  subscribe(({ info, classes }) => {
    if (classes?.length) clearMessage($("ask-message"), NOTHING_LEARNED);
    if (generation !== null && info.generation !== generation) askAgain(); // the answer of new weights may differ
    generation = info?.generation ?? null;
  });
}
