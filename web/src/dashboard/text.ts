/** How values are put into words. */

/** Cut to `max` characters, never within one. */
export function cut(text: string | undefined, max: number): string {
  if (!text) return "";
  return text.length <= max ? text : text.slice(0, max).replace(/[\uD800-\uDBFF]$/, "") + "…";
}

/** Takes most of a heap of accents away: it would cover the lines above. */
export const flat = (text: string): string => text.replace(/(\p{M}{4})\p{M}+/gu, "$1");

export function bytes(n: number): string {
  if (n < 1000) return n + " B";
  if (n < 1e6) return trim(n / 1000) + " kB";
  return trim(n / 1e6) + " MB";
}

export function duration(ms: number): string {
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60_000) return trim(ms / 1000) + " s";
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

const trim = (n: number): string => (n < 10 ? n.toFixed(1) : String(Math.round(n)));

/** How long ago. */
export function age(from: number, now: number): string {
  const s = Math.max(0, Math.round((now - from) / 1000));
  if (s < 5) return "now";
  if (s < 60) return s - (s % 5) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86_400) return Math.floor(s / 3600) + " h";
  return Math.floor(s / 86_400) + " d";
}

export const plural = (n: number, one: string, many = one + "s"): string => `${n.toLocaleString("en")} ${n == 1 ? one : many}`;

export const clock = (at: string): string => {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleTimeString("en-GB");
};

export const clientName = (client: { name: string; version: string }): string => (client.name ? `${client.name} ${client.version}`.trim() : "unknown client");

/** Whether a text has all the words of a query, case ignored. */
export function matches(query: string, ...texts: string[]): boolean {
  const text = texts.join("\n").toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
