// Webcam of a card: a live picture, and a button that teaches frames while it is held.

import { captureFrame, stopCamera, startCamera } from "./camera.js";
import { attempt, showMessage } from "./dom.js";
import { onHold } from "./hold_button.js";
import { state } from "./state.js";

const FRAME_INTERVAL = 200; // milliseconds between two frames

let openWebcam = null; // one at a time

/** Returns the pixels of a frame's shorter side that the learner needs before it crops the centre. */
export const frameSide = () => Math.ceil((state.info?.backbone.image_size ?? 224) / 0.875);

export class CardWebcam {
  /**
   * Takes the element, the button that opens it, the element for messages, and a function that learns frames: it gets
   * the frames and how many of this hold were learned before, and returns how many it has learned.
   */
  constructor(element, toggle, message, learnFrames) {
    Object.assign(this, { element, toggle, message, learnFrames, frames: [], timer: 0, held: false, sending: false });
    this.video = element.querySelector("video");
    this.button = element.querySelector(".hold");
    toggle.addEventListener("click", () => (element.hidden ? this.open() : this.close()));
    onHold(this.button, () => this.begin(), () => this.end());
  }

  async open() {
    openWebcam?.close();
    openWebcam = this;
    this.show(true);
    showMessage(this.message);
    if (await attempt(this.message, () => startCamera(this.video))) this.button.focus({ preventScroll: true });
    else this.show(false);
  }

  close() {
    this.end();
    if (!this.element.hidden) stopCamera(this.video);
    this.show(false);
    if (openWebcam === this) openWebcam = null;
  }

  show(on) {
    this.element.hidden = !on;
    this.toggle.setAttribute("aria-pressed", on);
    this.toggle.textContent = on ? "Close webcam" : "Webcam";
  }

  begin() {
    this.held = true;
    this.taken = 0;
    if (!this.sending) this.taught = 0; // otherwise the previous hold is still being sent, and counting continues
    this.takeFrame();
    this.timer = setInterval(() => this.takeFrame(), FRAME_INTERVAL);
  }

  async takeFrame() {
    if (!this.video.videoWidth) return;
    this.frames.push(await captureFrame(this.video, frameSide()));
    this.taken += 1;
    if (this.held) this.button.textContent = `Teaching: ${this.taken}`; // a frame that was taken when the button was released is taught, too
    this.send();
  }

  end() {
    this.held = false;
    clearInterval(this.timer);
    this.button.textContent = "Hold to teach";
  }

  /** Sends one request at a time; frames that arrive meanwhile go together into the next. */
  async send() {
    if (this.sending) return;
    this.sending = true;
    while (this.frames.length) this.taught += await this.learnFrames(this.frames.splice(0), this.taught);
    this.sending = false;
  }
}
