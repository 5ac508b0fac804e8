// The room where classes are: a card each, in the order of their ids, with new ones that nothing was taught yet.

import { Card } from "./card.js";
import { $, say } from "./dom.js";
import { count, counted, pictures } from "./format.js";
import { droppable } from "./pictures.js";
import { mayTeach, watch } from "./state.js";

const MANY = 6; // classes from which the list scrolls on its own
const FIRST = 12; // cards that a small screen shows of many: rooms.css counts them too

const cards = []; // drafts last
let unfolded = false;

const labelOf = (name) => name.trim().normalize("NFC");
const named = (label) => cards.find((card) => card.label === label);

function add(label, known = null) {
  const card = new Card(label, known);
  const before = known ? cards.findIndex((other) => other.id === null || other.id > known.id) : -1;
  cards.splice(before < 0 ? cards.length : before, 0, card);
  $("classes").insertBefore(card.element, before < 0 ? null : $("classes").children[before]);
  return card;
}

/** The two that wait in an empty learner: the first names typed are theirs. */
const untouched = () => cards.filter((card) => card.placeholder && card.id === null);

function remove(card) {
  cards.splice(cards.indexOf(card), 1);
  card.close();
}

/** Brings the cards to what the service says; a draft becomes the class that was taught under its name. */
function showClasses({ classes }) {
  if (!classes) return;
  for (const card of cards.filter((each) => each.id !== null && !classes.some(({ id }) => id === each.id))) remove(card);
  for (const known of classes) {
    const card = cards.find((each) => each.id === known.id) ?? cards.find((each) => each.id === null && each.label === known.label);
    (card ?? add(known.label, known)).show(known);
  }
  if (!cards.length && mayTeach()) for (const label of ["Class 1", "Class 2"]) add(label).placeholder = true;
  if (classes.length > 1) for (const card of untouched()) remove(card);
}

function showWords({ classes, info }) {
  if (!classes || !info) return;
  const taught = classes.filter((each) => each.stored);
  $("teach-sum").textContent = classes.length ? `${counted(classes.length, "class", "classes")}, ${pictures(info.samples.stored)}` : "";
  $("teach-hint").textContent = !mayTeach()
    ? "You may look and ask here; teaching needs another token."
    : taught.length > 1
      ? ""
      : taught.length
        ? "One thing is known. Teach me another to tell it from."
        : "Teach me two things: show each of these a few pictures, from the webcam or your files. " +
          "A handful is enough to begin. Then ask.";
  $("new-class").hidden = !mayTeach();
  $("teach").classList.toggle("many", classes.length > MANY);
  showFold();
}

/** Of many cards a small screen shows some, so that the other rooms are in reach. */
function showFold() {
  const sought = labelOf($("new-name").value) !== "";
  $("classes").classList.toggle("folded", !unfolded && !sought);
  $("show-all").hidden = cards.length <= FIRST || sought;
  $("show-all").textContent = unfolded ? "Show fewer" : `Show all ${count(cards.length)}`;
}

/** A card that somebody asked for is shown, however many there are. */
function keep(card) {
  card.element.classList.add("kept");
  return card;
}

/** While a name is typed, only cards with these letters are shown. */
function filter() {
  const letters = labelOf($("new-name").value).toLowerCase();
  for (const card of cards) card.element.hidden = !card.label.toLowerCase().includes(letters);
  showFold();
}

function claimed(label) {
  const [card] = untouched();
  card?.call(label);
  return card;
}

function submit(event) {
  event.preventDefault();
  const label = labelOf($("new-name").value);
  if (!label) return say($("teach-say"), "Give it a name first.", "bad");
  say($("teach-say"));
  const card = keep(named(label) ?? claimed(label) ?? add(label));
  $("new-name").value = "";
  filter();
  card.element.scrollIntoView({ block: "nearest" });
  card.element.querySelector(".pick").focus();
}

/** What is dropped beside the cards: a folder is a class, loose pictures need one. */
async function dropped(files, folders) {
  for (const { name, files: inside } of folders) {
    const label = labelOf(name);
    await keep(named(label) ?? add(label)).teach(inside);
  }
  if (files.length) say($("teach-say"), "Drop pictures on the card of their class; a folder dropped here becomes one.", "bad");
}

/** The card that an element lies in. */
export const cardAround = (element) => cards.find((card) => card.element.contains(element));

export function startTeach() {
  watch(showClasses);
  watch(showWords);
  $("new-class").addEventListener("submit", submit);
  $("new-name").addEventListener("input", () => {
    say($("teach-say"));
    filter();
  });
  $("show-all").addEventListener("click", () => {
    unfolded = !unfolded;
    showFold();
  });
  $("classes").addEventListener("drop-draft", (event) => remove(event.detail));
  droppable($("teach"), (files, folders) => mayTeach() && dropped(files, folders));
}
