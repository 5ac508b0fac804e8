// Light, dark or as the system has it, remembered by this browser.

import { $ } from "./dom.js";

const THEMES = ["auto", "light", "dark"];

const kept = {
  get: () => { try { return localStorage.getItem("siesta-theme"); } catch { return null; } },
  set: (theme) => { try { localStorage.setItem("siesta-theme", theme); } catch { /* for this visit only */ } },
};

function show(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme[0].toUpperCase() + theme.slice(1);
  $("theme").ariaLabel = $("theme").title = `Theme: ${theme}`;
}

export function startTheme() {
  let theme = THEMES.includes(kept.get()) ? kept.get() : "auto";
  show(theme);
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    kept.set(theme);
    show(theme);
  });
}
