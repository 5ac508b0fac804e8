// State of the page, with listeners that are called after every change.

export const state = {
  connection: "connecting", // "open", "lost" or "locked"
  info: null,
  classes: null,
  generations: [],
  sleep: { state: "never", running: false, words: "", progress: null, report: null },
};

const listeners = new Set();
let scheduled = false;

/** Calls `listener` at once, and after every change. */
export function subscribe(listener) {
  listeners.add(listener);
  listener(state);
}

/** Updates parts of the state; listeners are called once for all changes of one turn. */
export function change(parts) {
  Object.assign(state, parts);
  if (scheduled) return;
  scheduled = true;
  queueMicrotask(() => {
    scheduled = false;
    for (const listener of listeners) listener(state);
  });
}

export const mayTeach = () => state.info === null || state.info.scopes.includes("teach");
