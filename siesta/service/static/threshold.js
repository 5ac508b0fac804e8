// Choice of when a prediction is "unknown": below a familiarity, or by an error rate that held-out samples show.

import { $ } from "./dom.js";
import { subscribe } from "./state.js";

/** Returns the option of a prediction request that stands for the choice. */
export function thresholdOptions() {
  const [kind, value] = $("threshold").value.split(" ");
  return kind === "never" ? {} : { [kind]: value };
}

thresholdOptions.onChange = (listener) => $("threshold").addEventListener("change", listener);

export function setUpThreshold() {
  subscribe(({ info }) => {
    if (!info) return;
    const byErrorRate = $("threshold").querySelector("[value^=error_rate]");
    const [, rate] = byErrorRate.value.split(" ");
    const least = info.held_out.least_error_rate; // null if held-out pictures show no rate at all
    byErrorRate.disabled = least === null || least > Number(rate);
    byErrorRate.title = byErrorRate.disabled ? "Too few held-out pictures, or too many wrong answers to them, to promise this." : "";
    if (byErrorRate.disabled && byErrorRate.selected) $("threshold").value = "threshold 0.6";
  });
}
