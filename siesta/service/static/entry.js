// The token of a server that asks for one: from the address once, or typed in.

import { enter } from "./api.js";
import { $, attempt } from "./dom.js";
import { connect } from "./events.js";
import { watch } from "./state.js";

/** Takes `#token=...` out of the address, so that it is in no bookmark, and shows it to the service. */
async function fromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  await attempt($("entry-say"), () => enter(token));
}

export async function startEntry() {
  watch(({ connection }) => ($("entry").hidden = connection !== "locked"));
  $("entry").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await attempt($("entry-say"), () => enter($("token").value))) connect();
    $("token").value = "";
  });
  await fromAddress();
}
