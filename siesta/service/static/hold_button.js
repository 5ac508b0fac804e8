// Button that acts while it is held by finger, mouse or key.

/** Calls `begin` and `end` around every hold; a click without a hold (by a screen reader) is a very short one. */
export function onHold(button, begin, end) {
  let held = false, justHeld = false;
  const start = () => {
    if (held || button.disabled) return;
    held = true;
    button.classList.add("held");
    begin();
  };
  const stop = () => {
    if (!held) return;
    held = false;
    justHeld = true;
    setTimeout(() => (justHeld = false), 300);
    button.classList.remove("held");
    end();
  };
  const isKey = (event) => event.key === " " || event.key === "Enter";

  button.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    button.setPointerCapture(event.pointerId);
    start();
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture", "blur"]) button.addEventListener(name, stop);
  button.addEventListener("keydown", (event) => {
    if (!isKey(event)) return;
    event.preventDefault();
    if (!event.repeat) start();
  });
  button.addEventListener("keyup", (event) => isKey(event) && (event.preventDefault(), stop()));
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  button.addEventListener("click", () => {
    if (held || justHeld) return;
    start();
    setTimeout(stop, 50);
  });
}
