// Theme of the page: light, dark or the system's, stored in this browser.

import { $ } from "./dom.js";

const THEMES = ["auto", "light", "dark"];

const stored = {
  get: () => { try { return localStorage.getItem("siesta-theme"); } catch { return null; } },
  set: (theme) => { try { localStorage.setItem("siesta-theme", theme); } catch { /* storage is disabled: the theme lasts for this visit */ } },
};

function show(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme[0].toUpperCase() + theme.slice(1);
  $("theme").ariaLabel = $("theme").title = `Theme: ${theme}`;
}

export function setUpTheme() {
  let theme = THEMES.includes(stored.get()) ? stored.get() : "auto";
  show(theme);
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    stored.set(theme);
    show(theme);
  });
}
