// Finding and making elements, and saying things next to them; text is always text, never markup.

export const $ = (id) => document.getElementById(id);

/** An element with properties and children: make("li", {className: "used"}, "text", other). */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Words beside what they are about; kind is "good", "bad" or nothing. Lines after the first become a list. */
export function say(place, words = "", kind = "") {
  const [first, ...more] = [words].flat();
  if (!more.length && place.textContent === first && place.dataset.kind === kind) return; // not to be read out again
  place.dataset.kind = kind;
  place.setAttribute("role", kind === "bad" ? "alert" : "status");
  place.replaceChildren(first);
  if (more.length) place.append(make("ul", { className: "files" }, ...more.map((line) => make("li", {}, line))));
}

/** Takes words back where they still stand. */
export const unsay = (place, words) => place.textContent === words && say(place);

/** Runs a step; what goes wrong is said at `place`, and told by returning false. */
export async function attempt(place, step) {
  try {
    await step();
    return true;
  } catch (problem) {
    say(place, problem.message, "bad");
    return false;
  }
}

/** Runs a step with a button out of use meanwhile, so that it is not pressed twice. */
export async function busy(button, step) {
  button.disabled = true;
  const focused = document.activeElement === button;
  try {
    return await step();
  } finally {
    button.disabled = false;
    if (focused && document.activeElement === document.body) button.focus();
  }
}

/** The colour of a class: steps of the golden angle, so that neighbours differ. */
export function tint(element, classId) {
  element.style.setProperty("--tint", `oklch(0.64 0.15 ${(classId * 137.5 + 130) % 360})`);
  return element;
}
