// Theme: light or dark, as the system setting or as chosen. The choice is the only data that the
// page stores in the browser.

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const storageKey = "shredway-theme";

/** Returns "auto" without a choice or without storage. */
export function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(storageKey);
    return themes.find((theme) => theme === stored) ?? "auto";
  } catch {
    return "auto";
  }
}

export function showTheme(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function storeTheme(theme: Theme): void {
  showTheme(theme);
  try {
    localStorage.setItem(storageKey, theme);
  } catch {
    // Without storage, the choice is valid until the page is closed.
  }
}

/**
 * Calls `listener` whenever the page's colours may have changed. Returns a function that ends it.
 */
export function watchColours(listener: () => void): () => void {
  const queries = ["(prefers-color-scheme: dark)", "(forced-colors: active)", "print"].map(
    (query) => matchMedia(query),
  );
  for (const query of queries) query.addEventListener("change", listener);
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    for (const query of queries) query.removeEventListener("change", listener);
    observer.disconnect();
  };
}
