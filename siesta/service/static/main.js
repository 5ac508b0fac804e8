// Start of the page: sets up all sections and connects to the service.

import { NO_CONNECTION } from "./api.js";
import { setUpAsk, askAboutFile } from "./ask.js";
import { $, clearMessage } from "./dom.js";
import { setUpInputKind } from "./input_kind.js";
import { setUpTokenForm } from "./token_form.js";
import { connect, followVisibility } from "./events.js";
import { setUpMemory } from "./memory.js";
import { setUpLastSleep } from "./last_sleep.js";
import { ignoreStrayDrops, onPaste } from "./image_files.js";
import { setUpSleep } from "./sleep.js";
import { subscribe } from "./state.js";
import { cardContaining, setUpClassList } from "./class_list.js";
import { setUpTheme } from "./theme.js";
import { setUpThreshold } from "./threshold.js";

function showHeader({ connection, info, sleep, trouble }) {
  const status = connection !== "open" ? connection : sleep.running ? "asleep" : "awake";
  const names = { connecting: "Connecting", lost: "Not connected", locked: "Locked", asleep: "Asleep", awake: "Awake" };
  if ($("connection").dataset.state !== status) $("connection").textContent = names[status];
  $("connection").dataset.state = status;
  $("offline").hidden = connection !== "lost";
  $("offline").textContent = connection === "lost" ? `${trouble} Trying again every few seconds.` : "";
  const name = info?.name.replace(/\.siesta$/, "") ?? "";
  $("learner").textContent = name;
  document.title = name ? `${name}: siesta` : "siesta";
}

/** Removes messages about a lost connection when it is back. */
function clearConnectionErrors() {
  let before = "";
  subscribe(({ connection }) => {
    if (connection === "open" && before !== "open") for (const element of document.querySelectorAll(".message")) clearMessage(element, NO_CONNECTION);
    before = connection;
  });
}

/** Marks the visible section in the navigation bar of small screens. */
function markVisibleSection() {
  const links = [...document.querySelectorAll(".tabs a")], sections = [...document.querySelectorAll(".section")];
  const mark = () => {
    const above = sections.filter((section) => section.getBoundingClientRect().top < innerHeight / 3);
    const atEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 4;
    const visible = scrollY < 4 ? sections[0] : atEnd ? sections.at(-1) : above.at(-1) ?? sections[0];
    for (const link of links) {
      if (link.hash === `#${visible.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  document.addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  new ResizeObserver(mark).observe(document.querySelector("main")); // sections grow when the learner is known
}

setUpTheme();
setUpInputKind();
setUpClassList();
setUpThreshold();
setUpAsk();
setUpSleep();
setUpLastSleep();
setUpMemory();
subscribe(showHeader);
clearConnectionErrors();
ignoreStrayDrops();
onPaste((files, element) => {
  const card = cardContaining(element);
  if (card) card.teach(files);
  else askAboutFile(files[0]);
});
markVisibleSection();
followVisibility();
await setUpTokenForm();
connect();
