// Light or dark: as the system says, unless the reader chose. The choice is the one thing that the page
// keeps in the browser.

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const storageKey = "shredway-theme";

/** "auto" where nothing was chosen, and where browsers keep nothing. */
export function keptTheme(): Theme {
  try {
    const kept = localStorage.getItem(storageKey);
    return themes.find((theme) => theme === kept) ?? "auto";
  } catch {
    return "auto";
  }
}

export function showTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function keepTheme(theme: Theme): void {
  showTheme(theme);
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // It holds until the page is closed.
  }
}

/** Calls `listener` whenever the page's colours may have changed. Returns how to end that. */
export function watchColours(listener: () => void): () => void {
  const queries = ["(prefers-color-scheme: dark)", "(forced-colors: active)"].map((query) =>
    matchMedia(query),
  );
  for (const query of queries) query.addEventListener("change", listener);
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    for (const query of queries) query.removeEventListener("change", listener);
    observer.disconnect();
  };
}
