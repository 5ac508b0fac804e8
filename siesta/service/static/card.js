// Card of one class: its name, thumbnails, webcam and menu.

import { forgetClass, mergeClass, renameClass, thumbnail } from "./api.js";
import { CardWebcam } from "./card_webcam.js";
import { ask } from "./dialog.js";
import { $, attempt, make, showMessage, tint } from "./dom.js";
import { count, isolated, pictures, visible } from "./format.js";
import { onDrop } from "./image_files.js";
import { mayTeach, state } from "./state.js";
import { teach } from "./learn_images.js";

const MAX_THUMBNAILS = 6;

export class Card {
  /** `known` is the class as the service lists it, null for a new card without samples. */
  constructor(label, known) {
    this.element = $("class-card").content.firstElementChild.cloneNode(true);
    Object.assign(this, { label, id: null, known: null });
    this.name = this.part(".name");
    this.showName();
    this.message = this.part(".message");
    this.webcam = new CardWebcam(this.part(".card-webcam"), this.part(".webcam"), this.message, (frames, before) => this.teach(frames, before));
    this.listen();
    this.element.classList.add("draft", "fresh");
    this.updateLabels();
    this.part(".count").textContent = "new";
    if (known) this.show(known);
  }

  part(selector) {
    return this.element.querySelector(selector);
  }

  listen() {
    const input = this.part("input[type=file]");
    this.part(".pick").addEventListener("click", () => input.click());
    input.addEventListener("change", () => {
      this.teach([...input.files]);
      input.value = "";
    });
    onDrop(this.element, (files, folders) => this.teach([...files, ...folders.flatMap((folder) => folder.files)]));
    this.name.addEventListener("change", () => this.rename());
    this.name.addEventListener("focus", () => (this.name.value = this.label));
    this.name.addEventListener("blur", () => this.name.value === this.label && this.showName());
    this.name.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.name.value = this.label;
      if (event.key === "Enter" || event.key === "Escape") this.name.blur();
    });
    this.listenToMenu();
  }

  listenToMenu() {
    const menu = this.part(".more");
    this.part(".merge").addEventListener("click", () => this.merge());
    this.part(".forget").addEventListener("click", () => this.forget());
    menu.addEventListener("click", (event) => event.target.matches("button") && (menu.open = false));
    menu.addEventListener("focusout", (event) => menu.contains(event.relatedTarget) || (menu.open = false));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }

  /** Updates the card with the class as the service lists it. */
  show(known) {
    const before = this.known;
    Object.assign(this, { known, id: known.id, label: known.label });
    this.element.classList.remove("draft");
    if (document.activeElement !== this.name) this.showName();
    tint(this.part(".dot"), known.id);
    this.part(".count").textContent = count(known.stored);
    this.part(".count").title = `${pictures(known.taught)} taught, ${count(known.stored)} in memory`;
    this.updateLabels();
    if (String(before?.thumbnails) !== String(known.thumbnails)) this.showThumbnails(known.thumbnails);
    for (const button of this.element.querySelectorAll("button, .more")) button.hidden = !mayTeach();
    this.name.readOnly = !mayTeach();
  }

  /** Shows the class's name, with marks for invisible characters until it is edited. */
  showName() {
    this.name.value = visible(this.label);
  }

  /** Puts the class's name into the labels of all controls, for screen readers. */
  updateLabels() {
    this.name.setAttribute("aria-label", `Name of class ${isolated(this.label)}`);
    this.part("summary").setAttribute("aria-label", `More for ${isolated(this.label)}`);
    this.part(".pick").setAttribute("aria-label", `Add pictures of ${isolated(this.label)}`);
    this.part(".webcam").setAttribute("aria-label", `Webcam for ${isolated(this.label)}`);
    this.part(".merge").hidden = this.id === null;
    this.part(".forget").textContent = this.id === null ? "Remove" : "Forget…";
  }

  showThumbnails(ids) {
    const shown = ids.slice(0, MAX_THUMBNAILS), list = this.part(".thumbs");
    const old = new Map([...list.children].map((item) => [item.dataset.id, item]));
    list.replaceChildren(...shown.map((id) => old.get(String(id)) ?? this.makeThumbnail(id)));
  }

  makeThumbnail(id) {
    const image = make("img", { src: thumbnail(id), alt: `A picture of ${isolated(this.label)}`, loading: "lazy" });
    const item = make("li", {}, image);
    item.dataset.id = id;
    image.addEventListener("error", () => item.remove());
    return item;
  }

  /**
   * Learns pictures and shows the result on the card. Frames of the webcam come in parts, of which `before` counts
   * those that were learned already. Returns how many of `images` were learned.
   */
  async teach(images, before = null) {
    if (!images.length) return showMessage(this.message, "There was no picture in that: use files, not links.", "bad");
    const { label } = this, total = images.length;
    const progress = (done) => total > 1 && before === null && showMessage(this.message, `${done} of ${total}`);
    let learned = 0;
    progress(0);
    await attempt(this.message, async () => {
      const { taught, refused } = await teach(images, label, progress);
      learned = taught;
      if (refused.length) showMessage(this.message, [`${taught} of ${total} taught; not these:`, ...refused], "bad");
      else showMessage(this.message, `${pictures(before + taught)} taught.`, "good");
    });
    return learned;
  }

  async rename() {
    const label = this.name.value.trim().normalize("NFC"), old = this.label;
    if (!label || label === old) {
      this.showName();
      return showMessage(this.message); // the message was about another name
    }
    if (this.id === null) return this.setLabel(label);
    if (await attempt(this.message, () => renameClass(this.id, label))) showMessage(this.message, `Renamed from ${isolated(old)}.`, "good");
    else this.showName();
  }

  /** Names a card that has no samples yet. */
  setLabel(label) {
    Object.assign(this, { label, placeholder: false });
    this.showName();
    this.updateLabels();
  }

  async merge() {
    const others = state.classes.filter(({ id }) => id !== this.id).map(({ id, label }) => [id, visible(label)]);
    if (!others.length) return showMessage(this.message, "There is no other class to merge it into.", "bad");
    const text = `All pictures of ${isolated(this.label)} become pictures of the other class. This cannot be undone.`;
    const into = await ask({ title: `Merge ${isolated(this.label)}`, text, yes: "Merge", choices: others });
    if (into !== null) await attempt(this.message, () => mergeClass(this.id, Number(into)));
  }

  async forget() {
    if (this.id === null) return this.element.dispatchEvent(new CustomEvent("drop-draft", { bubbles: true, detail: this }));
    const { stored } = this.known;
    const text = `Its ${pictures(stored)} ${stored === 1 ? "leaves" : "leave"} the memory and every kept generation. This cannot be undone.`;
    if (await ask({ title: `Forget ${isolated(this.label)}?`, text, yes: "Forget" })) {
      await attempt(this.message, () => forgetClass(this.id));
    }
  }

  close() {
    this.webcam.close();
    this.element.remove();
  }
}
