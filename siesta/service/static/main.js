// Puts the page together.

import { GONE } from "./api.js";
import { startAsk, askPicture } from "./ask.js";
import { $, unsay } from "./dom.js";
import { startEntry } from "./entry.js";
import { connect, followVisibility } from "./events.js";
import { startMemory } from "./memory.js";
import { startMorning } from "./morning.js";
import { ignoreStrayDrops, onPaste } from "./pictures.js";
import { startSleep } from "./sleep.js";
import { watch } from "./state.js";
import { cardAround, startTeach } from "./teach.js";
import { startTheme } from "./theme.js";
import { startUnsure } from "./unsure.js";

function showHeader({ connection, info, sleep, trouble }) {
  const now = connection !== "open" ? connection : sleep.running ? "asleep" : "awake";
  const words = { connecting: "Connecting", lost: "Not connected", locked: "Locked", asleep: "Asleep", awake: "Awake" };
  if ($("connection").dataset.state !== now) $("connection").textContent = words[now];
  $("connection").dataset.state = now;
  $("offline").hidden = connection !== "lost";
  $("offline").textContent = connection === "lost" ? `${trouble} Looking for it again every few seconds.` : "";
  const name = info?.name.replace(/\.siesta$/, "") ?? "";
  $("learner").textContent = name;
  document.title = name ? `${name}: siesta` : "siesta";
}

/** What failed because the service was gone can be tried again when it is back. */
function forgetTrouble() {
  let before = "";
  watch(({ connection }) => {
    if (connection === "open" && before !== "open") for (const place of document.querySelectorAll(".say")) unsay(place, GONE);
    before = connection;
  });
}

/** Marks the room that is looked at in the bar below, on small screens. */
function followRooms() {
  const links = [...document.querySelectorAll(".tabs a")], rooms = [...document.querySelectorAll(".room")];
  const mark = () => {
    const above = rooms.filter((room) => room.getBoundingClientRect().top < innerHeight / 3);
    const atEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 4;
    const now = scrollY < 4 ? rooms[0] : atEnd ? rooms.at(-1) : above.at(-1) ?? rooms[0];
    for (const link of links) {
      if (link.hash === `#${now.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  document.addEventListener("scroll", () => requestAnimationFrame(mark), { passive: true });
  new ResizeObserver(mark).observe(document.querySelector("main")); // rooms grow when the learner is known
}

startTheme();
startTeach();
startUnsure();
startAsk();
startSleep();
startMorning();
startMemory();
watch(showHeader);
forgetTrouble();
ignoreStrayDrops();
onPaste((files, place) => {
  const card = cardAround(place);
  if (card) card.teach(files);
  else askPicture(files[0]);
});
followRooms();
followVisibility();
await startEntry();
connect();
