// The card of one class: its name, its pictures, and what can be done with it.

import { forgetClass, mergeClass, renameClass, thumbnail } from "./api.js";
import { Booth } from "./booth.js";
import { ask } from "./dialog.js";
import { $, attempt, make, say, tint } from "./dom.js";
import { count, pictures } from "./format.js";
import { droppable } from "./pictures.js";
import { mayTeach, state } from "./state.js";
import { teach } from "./teaching.js";

const SHOWN = 6; // thumbnails

export class Card {
  /** `known` is the class as the service lists it, null for one that nothing was taught yet. */
  constructor(label, known) {
    this.element = $("class-card").content.firstElementChild.cloneNode(true);
    Object.assign(this, { label, id: null, known: null });
    this.name = this.part(".name");
    this.name.value = label;
    this.words = this.part(".say");
    this.booth = new Booth(this.part(".booth"), this.part(".webcam"), this.words, (frames, before) => this.teach(frames, before));
    this.listen();
    this.element.classList.add("draft", "fresh");
    this.showNames();
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
    droppable(this.element, (files, folders) => this.teach([...files, ...folders.flatMap((folder) => folder.files)]));
    this.name.addEventListener("change", () => this.rename());
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

  /** Takes over what the service says of this class. */
  show(known) {
    const before = this.known;
    Object.assign(this, { known, id: known.id, label: known.label });
    this.element.classList.remove("draft");
    if (document.activeElement !== this.name) this.name.value = known.label;
    tint(this.part(".dot"), known.id);
    this.part(".count").textContent = count(known.stored);
    this.part(".count").title = `${pictures(known.taught)} taught, ${count(known.stored)} in memory`;
    this.showNames();
    if (String(before?.thumbnails) !== String(known.thumbnails)) this.showThumbnails(known.thumbnails);
    for (const button of this.element.querySelectorAll("button, .more")) button.hidden = !mayTeach();
    this.name.readOnly = !mayTeach();
  }

  /** Says which class a control belongs to, for those who hear the page. */
  showNames() {
    this.name.setAttribute("aria-label", `Name of class ${this.label}`);
    this.part("summary").setAttribute("aria-label", `More for ${this.label}`);
    this.part(".pick").setAttribute("aria-label", `Add pictures of ${this.label}`);
    this.part(".webcam").setAttribute("aria-label", `Webcam for ${this.label}`);
    this.part(".merge").hidden = this.id === null;
    this.part(".forget").textContent = this.id === null ? "Remove" : "Forget…";
  }

  showThumbnails(ids) {
    const shown = ids.slice(0, SHOWN), list = this.part(".thumbs");
    const old = new Map([...list.children].map((item) => [item.dataset.id, item]));
    list.replaceChildren(...shown.map((id) => old.get(String(id)) ?? this.makeThumbnail(id)));
  }

  makeThumbnail(id) {
    const image = make("img", { src: thumbnail(id), alt: `A picture of ${this.label}`, loading: "lazy" });
    const item = make("li", {}, image);
    item.dataset.id = id;
    image.addEventListener("error", () => item.remove());
    return item;
  }

  /**
   * Teaches pictures, and says here what became of them. Frames of a webcam come in parts: `before` is how many were
   * taught already. Returns how many of these were.
   */
  async teach(images, before = null) {
    if (!images.length) return say(this.words, "There was no picture in that: use files, not links.", "bad");
    const { label } = this, many = images.length;
    const progress = (through) => many > 1 && before === null && say(this.words, `${through} of ${many}`);
    let learned = 0;
    progress(0);
    await attempt(this.words, async () => {
      const { taught, refused } = await teach(images, label, progress);
      learned = taught;
      if (refused.length) say(this.words, [`${taught} of ${many} taught; not these:`, ...refused], "bad");
      else say(this.words, `${pictures(before + taught)} taught.`, "good");
    });
    return learned;
  }

  async rename() {
    const label = this.name.value.trim().normalize("NFC"), old = this.label;
    if (!label || label === old) {
      this.name.value = old;
      return say(this.words); // what was said of another name
    }
    if (this.id === null) return this.call(label);
    if (await attempt(this.words, () => renameClass(this.id, label))) say(this.words, `Renamed from ${old}.`, "good");
    else this.name.value = old;
  }

  /** Gives a name to a card that nothing was taught yet. */
  call(label) {
    Object.assign(this, { label, placeholder: false });
    this.name.value = label;
    this.showNames();
  }

  async merge() {
    const others = state.classes.filter(({ id }) => id !== this.id).map(({ id, label }) => [id, label]);
    if (!others.length) return say(this.words, "There is no other class to merge it into.", "bad");
    const words = `All pictures of ${this.label} become pictures of the other class. This cannot be undone.`;
    const into = await ask({ title: `Merge ${this.label}`, words, yes: "Merge", choices: others });
    if (into !== null) await attempt(this.words, () => mergeClass(this.id, Number(into)));
  }

  async forget() {
    if (this.id === null) return this.element.dispatchEvent(new CustomEvent("drop-draft", { bubbles: true, detail: this }));
    const { stored } = this.known;
    const words = `Its ${pictures(stored)} ${stored === 1 ? "leaves" : "leave"} the memory and every kept generation. This cannot be undone.`;
    if (await ask({ title: `Forget ${this.label}?`, words, yes: "Forget" })) {
      await attempt(this.words, () => forgetClass(this.id));
    }
  }

  close() {
    this.booth.close();
    this.element.remove();
  }
}
