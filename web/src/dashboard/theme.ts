/** Light, dark, or as the system has it; remembered in this browser. */

import { effect, signal } from "@preact/signals";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "jsbridge-theme";

export const theme = signal<Theme>("system");

export function followTheme(): void {
  theme.value = remembered();
  effect(() => {
    if (theme.value == "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme.value;
    try {
      if (theme.value == "system") localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, theme.value);
    } catch {
      // Then only for now.
    }
  });
  // Another tab of the dashboard chose.
  addEventListener("storage", (event) => {
    if (event.key == KEY) theme.value = remembered();
  });
}

function remembered(): Theme {
  try {
    const kept = localStorage.getItem(KEY) as Theme;
    return THEMES.includes(kept) ? kept : "system";
  } catch {
    return "system";
  }
}
