// The token of a server that asks for one: from the address, or typed in.

import { enter } from "./api.js";
import { $, attempt, say } from "./dom.js";
import { connect } from "./events.js";
import { watch } from "./state.js";

/** Shows a token to the service, and goes in. */
const show = (token) =>
  attempt($("entry-say"), async () => {
    try {
      await enter(token);
    } catch (problem) {
      if (problem.status === 401) $("token").value = ""; // else it may be right: it has to wait
      throw problem;
    }
    $("token").value = "";
    say($("entry-say"));
  });

/** Takes `#token=...` out of the address, so that it is in no bookmark, and shows it to the service. */
async function fromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return false;
  history.replaceState(null, "", location.pathname);
  return show(token);
}

/** Without a token there is nothing to do here but to give one. */
function showEntry({ connection }) {
  const locked = connection === "locked";
  $("entry").hidden = !locked;
  for (const part of document.querySelectorAll("main, .tabs, .skip")) part.hidden = locked;
}

export async function startEntry() {
  watch(showEntry);
  $("entry").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await show($("token").value)) connect();
  });
  addEventListener("hashchange", async () => (await fromAddress()) && connect()); // the link, opened where the page is already
  await fromAddress();
}
