// Switch for the colour theme: light, dark or system setting.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { storedTheme, storeTheme, type Theme, themes } from "../theme.ts";

const signs: Readonly<Record<Theme, string>> = { auto: "◐", light: "☀", dark: "☾" };
const names: Readonly<Record<Theme, string>> = {
  auto: "system setting",
  light: "light",
  dark: "dark",
};

export function ThemeSwitch(): JSX.Element {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  const next = themes[(themes.indexOf(theme) + 1) % themes.length] ?? "auto";
  const choose = () => {
    storeTheme(next);
    setTheme(next);
  };
  return (
    <button
      type="button"
      class="quiet theme"
      aria-label={`Colours: ${names[theme]}. Change to ${names[next]}`}
      title={`Colours: ${names[theme]}`}
      onClick={choose}
    >
      <span aria-hidden="true">{signs[theme]}</span>
    </button>
  );
}
