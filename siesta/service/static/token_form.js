// Access token of a service that needs one: from the page's address, or typed into a form.

import { beginSession } from "./api.js";
import { $, attempt, showMessage } from "./dom.js";
import { connect } from "./events.js";
import { subscribe } from "./state.js";

/** Exchanges a token for a cookie; returns whether it was accepted. */
const submitToken = (token) =>
  attempt($("token-message"), async () => {
    try {
      await beginSession(token);
    } catch (problem) {
      if (problem.status === 401) $("token").value = ""; // with another status it may be right, and can be tried again
      throw problem;
    }
    $("token").value = "";
    showMessage($("token-message"));
  });

/** Uses `#token=...` of the address and removes it there, so that no bookmark contains it. */
async function fromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return false;
  history.replaceState(null, "", location.pathname);
  return submitToken(token);
}

/** Shows the form, and nothing else of the page, while a token is needed. */
function showTokenForm({ connection }) {
  const locked = connection === "locked";
  $("token-form").hidden = !locked;
  for (const part of document.querySelectorAll("main, .tabs, .skip")) part.hidden = locked;
}

export async function setUpTokenForm() {
  subscribe(showTokenForm);
  $("token-form").addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await submitToken($("token").value)) connect();
  });
  addEventListener("hashchange", async () => (await fromAddress()) && connect()); // the link was opened in a tab that shows the page already
  await fromAddress();
}
