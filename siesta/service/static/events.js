// Keeps the state up to date from the event stream, through interruptions and sleeping tabs.

import { GONE, readClasses, readGenerations, readInfo } from "./api.js";
import { change } from "./state.js";

const AGAIN = 2000; // milliseconds until a lost service is looked for

let source = null, retry = 0, reading = null, stale = false;

/** Reads everything that `changed` stands for; calls during a reading lead to one more. */
export function refresh() {
  stale = true;
  reading ??= read().finally(() => (reading = null));
  return reading;
}

async function read() {
  while (stale) {
    stale = false;
    const info = await readInfo(); // alone: a token that is not valid any more is to be refused once
    const [classes, generations] = await Promise.all([readClasses(), readGenerations()]);
    change({ info, classes, generations });
  }
}

function lost(problem) {
  disconnect();
  if (problem.status === 401) return change({ connection: "locked" });
  change({ connection: "lost", trouble: problem.status ? problem.message : GONE });
  retry = setTimeout(connect, AGAIN);
}

/** It answers, but lets nobody listen just now. */
function unheard() {
  change({ connection: "open" });
  retry = setTimeout(connect, AGAIN);
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

/** Reads, then listens; also after the token was given. */
export async function connect() {
  disconnect();
  try {
    await refresh();
  } catch (problem) {
    return lost(problem);
  }
  if (!document.hidden) listen();
}

function listen() {
  disconnect();
  source = new EventSource("v1/events");
  source.addEventListener("changed", () => refresh().catch(lost));
  source.addEventListener("sleep", (event) => change({ sleep: JSON.parse(event.data), connection: "open" }));
  source.addEventListener("error", () => {
    disconnect();
    refresh().then(unheard, lost);
  });
}

/** A tab that nobody looks at keeps no connection open: browsers allow few of them. */
export function followVisibility() {
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
}
