// Keeps the state up to date by the event stream, across interruptions and hidden tabs.

import { NO_CONNECTION, readClasses, readGenerations, readInfo } from "./api.js";
import { change } from "./state.js";

const RECONNECT_DELAY = 2000; // milliseconds

let source = null, retry = 0, reading = null, stale = false;

/** Reads everything that an event `changed` stands for; calls while it is being read lead to one more reading. */
export function refresh() {
  stale = true;
  reading ??= read().finally(() => (reading = null));
  return reading;
}

async function read() {
  while (stale) {
    stale = false;
    const info = await readInfo(); // alone, so that an invalid token is refused once only
    const [classes, generations] = await Promise.all([readClasses(), readGenerations()]);
    change({ info, classes, generations });
  }
}

function lost(problem) {
  disconnect();
  if (problem.status === 401) return change({ connection: "locked" });
  change({ connection: "lost", trouble: problem.status ? problem.message : NO_CONNECTION });
  retry = setTimeout(connect, RECONNECT_DELAY);
}

/** The service answers, but refuses event streams at present. */
function streamRefused() {
  change({ connection: "open" });
  retry = setTimeout(connect, RECONNECT_DELAY);
}

function disconnect() {
  clearTimeout(retry);
  source?.close();
  source = null;
}

/** Reads the state, then opens the event stream. */
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
    refresh().then(streamRefused, lost);
  });
}

/** Closes the event stream of hidden tabs, because browsers allow few connections. */
export function followVisibility() {
  document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
}
