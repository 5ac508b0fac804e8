// The webcam of a card: a live picture, and a button that teaches for as long as it is held.

import { grab, leave, look } from "./camera.js";
import { attempt, say } from "./dom.js";
import { holdable } from "./hold.js";
import { state } from "./state.js";

const EVERY = 200; // milliseconds between two frames

let open = null; // one booth at a time

/** Pixels of a frame's shorter side: as many as the learner looks at. */
export const frameSide = () => Math.ceil((state.info?.backbone.image_size ?? 224) / 0.875);

export class Booth {
  /**
   * Takes its element, the button that opens it, a place for words, and what teaches frames: it is told how many
   * of this hold were taught before them, and tells how many it taught.
   */
  constructor(element, toggle, words, take) {
    Object.assign(this, { element, toggle, words, take, frames: [], timer: 0, held: false, sending: false });
    this.video = element.querySelector("video");
    this.button = element.querySelector(".hold");
    toggle.addEventListener("click", () => (element.hidden ? this.open() : this.close()));
    holdable(this.button, () => this.begin(), () => this.end());
  }

  async open() {
    open?.close();
    open = this;
    this.show(true);
    say(this.words);
    if (await attempt(this.words, () => look(this.video))) this.button.focus({ preventScroll: true });
    else this.show(false);
  }

  close() {
    this.end();
    if (!this.element.hidden) leave(this.video);
    this.show(false);
    if (open === this) open = null;
  }

  show(on) {
    this.element.hidden = !on;
    this.toggle.setAttribute("aria-pressed", on);
    this.toggle.textContent = on ? "Close webcam" : "Webcam";
  }

  begin() {
    this.held = true;
    this.taken = 0;
    if (!this.sending) this.taught = 0; // else it goes on counting: the hold before is not through yet
    this.snap();
    this.timer = setInterval(() => this.snap(), EVERY);
  }

  async snap() {
    if (!this.video.videoWidth) return;
    this.frames.push(await grab(this.video, frameSide()));
    this.taken += 1;
    if (this.held) this.button.textContent = `Teaching: ${this.taken}`; // let go while the frame was taken: it is taught all the same
    this.send();
  }

  end() {
    this.held = false;
    clearInterval(this.timer);
    this.button.textContent = "Hold to teach";
  }

  /** One request at a time; what comes meanwhile goes together in the next. */
  async send() {
    if (this.sending) return;
    this.sending = true;
    while (this.frames.length) this.taught += await this.take(this.frames.splice(0), this.taught);
    this.sending = false;
  }
}
