// The section "Teach": a card for each class in the order of their ids, then new cards without samples.

import { Card } from "./card.js";
import { $, showMessage } from "./dom.js";
import { count, counted, pictures } from "./format.js";
import { onDrop } from "./image_files.js";
import { mayTeach, subscribe } from "./state.js";

const SCROLLING_FROM = 6; // number of classes from which the list scrolls on its own
const FOLDED_COUNT = 12; // number of cards that small screens show of many; sections.css has it, too

const cards = []; // those without a class last
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

/** Returns the cards that an empty learner shows; the first names that are typed become theirs. */
const placeholderCards = () => cards.filter((card) => card.placeholder && card.id === null);

function remove(card) {
  cards.splice(cards.indexOf(card), 1);
  card.close();
}

/** Updates the cards with the service's classes; a new card becomes the class that was learned under its name. */
function showClasses({ classes }) {
  if (!classes) return;
  for (const card of cards.filter((each) => each.id !== null && !classes.some(({ id }) => id === each.id))) remove(card);
  for (const known of classes) {
    const card = cards.find((each) => each.id === known.id) ?? cards.find((each) => each.id === null && each.label === known.label);
    (card ?? add(known.label, known)).show(known);
  }
  if (!cards.length && mayTeach()) for (const label of ["Class 1", "Class 2"]) add(label).placeholder = true;
  if (classes.length > 1) for (const card of placeholderCards()) remove(card);
}

function showSummary({ classes, info }) {
  if (!classes || !info) return;
  const taught = classes.filter((each) => each.stored);
  $("class-count").textContent = classes.length ? `${counted(classes.length, "class", "classes")}, ${pictures(info.samples.stored)}` : "";
  $("teach-hint").textContent = !mayTeach()
    ? "You may look and ask here; teaching needs another token."
    : taught.length > 1
      ? ""
      : taught.length
        ? "One thing is known. Teach me another to tell it from."
        : "Teach me two things: show each of these a few pictures, from the webcam or your files. " +
          "A handful is enough to begin. Then ask.";
  $("new-class").hidden = !mayTeach();
  $("teach").classList.toggle("many", classes.length > SCROLLING_FROM);
  showFold();
}

/** Shows only some of many cards on small screens, so that the other sections are within reach. */
function showFold() {
  const searching = labelOf($("new-name").value) !== "";
  $("classes").classList.toggle("folded", !unfolded && !searching);
  $("show-all").hidden = cards.length <= FOLDED_COUNT || searching;
  $("show-all").textContent = unfolded ? "Show fewer" : `Show all ${count(cards.length)}`;
}

/** Marks a card that is shown however many there are. */
function alwaysShow(card) {
  card.element.classList.add("kept");
  return card;
}

/** Shows only the cards whose name contains what is typed. */
function filter() {
  const letters = labelOf($("new-name").value).toLowerCase();
  for (const card of cards) card.element.hidden = !card.label.toLowerCase().includes(letters);
  showFold();
}

function claimPlaceholder(label) {
  const [card] = placeholderCards();
  card?.setLabel(label);
  return card;
}

function submit(event) {
  event.preventDefault();
  const label = labelOf($("new-name").value);
  if (!label) return showMessage($("teach-message"), "Give it a name first.", "bad");
  showMessage($("teach-message"));
  const card = alwaysShow(named(label) ?? claimPlaceholder(label) ?? add(label));
  $("new-name").value = "";
  filter();
  card.element.scrollIntoView({ block: "nearest" });
  card.element.querySelector(".pick").focus();
}

/** Handles a drop beside the cards: a folder becomes a class, single pictures are refused. */
async function handleDrop(files, folders) {
  for (const { name, files: inside } of folders) {
    const label = labelOf(name);
    await alwaysShow(named(label) ?? add(label)).teach(inside);
  }
  if (files.length) showMessage($("teach-message"), "Drop pictures on the card of their class; a folder dropped here becomes one.", "bad");
}

/** Returns the card that contains an element. */
export const cardContaining = (element) => cards.find((card) => card.element.contains(element));

export function setUpClassList() {
  subscribe(showClasses);
  subscribe(showSummary);
  $("new-class").addEventListener("submit", submit);
  $("new-name").addEventListener("input", () => {
    showMessage($("teach-message"));
    filter();
  });
  $("show-all").addEventListener("click", () => {
    unfolded = !unfolded;
    showFold();
  });
  $("classes").addEventListener("drop-draft", (event) => remove(event.detail));
  onDrop($("teach"), (files, folders) => mayTeach() && handleDrop(files, folders));
}
