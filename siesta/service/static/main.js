// Puts the page together.

import { startAsk, askPicture } from "./ask.js";
import { $ } from "./dom.js";
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

/** Marks the room that is looked at in the bar below, on small screens. */
function followRooms() {
  const links = [...document.querySelectorAll(".tabs a")];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      for (const link of links) link.toggleAttribute("aria-current", link.hash === `#${target.id}`);
    }
  }, { rootMargin: "-40% 0px -55%" });
  for (const room of document.querySelectorAll(".room")) seen.observe(room);
}

startTheme();
startTeach();
startUnsure();
startAsk();
startSleep();
startMorning();
startMemory();
watch(showHeader);
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
