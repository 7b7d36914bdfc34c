import { render } from "preact";
import { start as begin } from "./app.ts";
import { followHash } from "./route.ts";
import { Shell } from "./shell.tsx";
import { followTheme } from "./theme.ts";

export function start(): void {
  followTheme();
  followHash();
  render(<Shell />, document.getElementById("app")!);
  begin();
}
