/** Calls in one line. */

import { href } from "./route.ts";
import { duration } from "./text.ts";
import type { Call } from "./types.ts";
import { Age, memo, Text } from "./ui.tsx";

const TONES: Record<Call["state"], string> = { running: "accent", done: "good", failed: "bad", cancelled: "plain" };

export function CallState({ state }: { state: Call["state"] }) {
  return <span class={`state ${TONES[state] ?? "plain"} ${state == "running" ? "beating" : ""}`}>{state}</span>;
}

export const caller = (call: Call): string => (call.by == "dashboard" ? "you, here" : call.client.name || "unknown client");

export const CallLine = memo(({ call }: { call: Call }) => (
  <li class="row call-line">
    <a class="row-main" href={href("activity", call.id)}>
      <Text class="strong mono" value={call.name} max={50} />
      <span class="row-sub soft">
        <Text value={caller(call)} max={40} />
        {call.error && <Text class="bad" value={call.error} max={80} />}
      </span>
    </a>
    <span class="row-facts">
      {call.ms !== undefined && <span class="soft">{duration(call.ms)}</span>}
      <CallState state={call.state} />
      <Age since={call.at} />
    </span>
  </li>
));
