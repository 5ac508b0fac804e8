// What the page knows of the learner; whoever shows some of it hears of every change.

export const state = {
  connection: "connecting", // "open", "lost" or "locked"
  info: null,
  classes: null,
  generations: [],
  sleep: { state: "never", running: false, words: "", progress: null, report: null },
};

const listeners = new Set();
let announced = false;

/** Calls `listener` at once, and after every change. */
export function watch(listener) {
  listeners.add(listener);
  listener(state);
}

/** Takes over new parts; listeners are told once for all changes made together. */
export function change(parts) {
  Object.assign(state, parts);
  if (announced) return;
  announced = true;
  queueMicrotask(() => {
    announced = false;
    for (const listener of listeners) listener(state);
  });
}

export const mayTeach = () => state.info === null || state.info.scopes.includes("teach");
