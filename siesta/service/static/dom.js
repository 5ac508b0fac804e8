// Elements: finding and making them, and showing messages; text is always set as text, never as markup.

export const $ = (id) => document.getElementById(id);

/** Returns an element with properties and children: make("li", {className: "used"}, "text", other). */
export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** Shows a message in an element; `kind` is "good", "bad" or "". Lines after the first become a list. */
export function showMessage(element, text = "", kind = "") {
  const [first, ...more] = [text].flat();
  if (!more.length && element.textContent === first && element.dataset.kind === kind) return; // a screen reader would read it again
  element.dataset.kind = kind;
  element.setAttribute("role", kind === "bad" ? "alert" : "status");
  element.replaceChildren(first);
  if (more.length) element.append(make("ul", { className: "files" }, ...more.map((line) => make("li", {}, line))));
}

/** Removes a message if it is still shown. */
export const clearMessage = (element, text) => element.textContent === text && showMessage(element);

/** Runs a step and returns whether it succeeded; an error is shown in `element`. */
export async function attempt(element, step) {
  try {
    await step();
    return true;
  } catch (problem) {
    showMessage(element, problem.message, "bad");
    return false;
  }
}

/** Runs a step while a button is disabled, so that it is not pressed twice. */
export async function whileDisabled(button, step) {
  button.disabled = true;
  const focused = document.activeElement === button;
  try {
    return await step();
  } finally {
    button.disabled = false;
    if (focused && document.activeElement === document.body) button.focus();
  }
}

/** Sets the colour of a class: steps of the golden angle, so that classes with neighbouring ids differ. */
export function tint(element, classId) {
  element.style.setProperty("--tint", `oklch(0.64 0.15 ${(classId * 137.5 + 130) % 360})`);
  return element;
}
