// When an answer shall be "unknown": below a score, or so that few held-out samples would be answered wrongly.

import { $ } from "./dom.js";
import { watch } from "./state.js";

/** What to ask the service for. */
export function unsure() {
  const [kind, value] = $("unsure").value.split(" ");
  return kind === "never" ? {} : { [kind]: value };
}

unsure.onChange = (listener) => $("unsure").addEventListener("change", listener);

export function startUnsure() {
  watch(({ info }) => {
    if (!info) return;
    const judged = $("unsure").querySelector("[value^=error_rate]");
    judged.disabled = !info.held_out.samples;
    if (judged.disabled && judged.selected) $("unsure").value = "threshold 0.6";
  });
}
