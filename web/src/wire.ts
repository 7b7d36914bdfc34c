/**
 * The messages of the page protocol, version 1. The Go side has its own copy;
 * both are tested against the frames in bridge/page/testdata/wire.
 */

import { attempt } from "./readable.ts";

/** What the server may ask for, or tell, a page. */
export type ServerMessage =
  | Welcome
  | Registered
  | Call
  | { type: "cancel"; id: string; reason?: string }
  | { type: "identify"; label?: string }
  | { type: "move_channel"; channel: string }
  | { type: "approved" }
  | { type: "probe"; id: string }
  | { type: "error"; message: string; of?: string };

/** First message to a page that said `v=1`. */
export interface Welcome {
  type: "welcome";
  connectionId: string;
  state: "ready" | "pending";
  /** Why it is pending, and what a human can do. */
  reason?: string;
  channel?: string;
  limits?: { frameBytes?: number; tools?: number };
}

/** Acknowledges each `register_tools`. */
export interface Registered {
  type: "registered";
  prefix: string;
  tools?: { name: string; published: string }[];
  problems?: Problem[];
}

/** Runs a tool. */
export interface Call {
  type: "call";
  id: string;
  name: string;
  args?: unknown;
  timeoutMs?: number;
  progress?: boolean;
  agent?: { name?: string; version?: string };
}

/** A tool that was left out, and why. `index` is its place among all that were declared. */
export interface Problem {
  name: string;
  index: number;
  reason: string;
}

/** What a page may tell the server. */
export type PageMessage =
  | RegisterTools
  | { type: "call_result"; id: string; result?: unknown }
  | { type: "call_result"; id: string; error: CallError }
  | { type: "progress"; id: string; progress: number; total?: number | undefined; message?: string | undefined }
  | { type: "log"; id?: string; level: string; data: unknown; logger?: string }
  | { type: "rename_connection"; appLabel: string }
  | { type: "leave_channel" }
  | { type: "alive"; id: string };

/** Replaces everything the page declared before. */
export interface RegisterTools {
  type: "register_tools";
  tools: WireTool[];
  summary?: unknown;
  appLabel?: unknown;
  url?: string;
  title?: string | undefined;
  problems?: Problem[];
}

/** A tool without its function. What the page wrote goes unjudged: the server checks it. */
export interface WireTool {
  /** `dynamic`: added at run time, `origin` from what. */
  source: "host" | "dynamic";
  origin?: unknown;
  name?: unknown;
  title?: unknown;
  description?: unknown;
  params?: unknown;
  inputSchema?: unknown;
  example?: unknown;
  outputSchema?: unknown;
  annotations?: unknown;
  icons?: unknown;
  timeoutMs?: unknown;
}

/** Why a call failed. There is no stack: it holds local paths. */
export interface CallError {
  message: string;
  name?: string | undefined;
  code?: string | undefined;
}

/** One frame. Fields that are undefined are left out. */
export const encode = (message: PageMessage): string => JSON.stringify(message);

/** What a text takes on the wire. */
export const byteLength = (text: string): number => new Blob([text]).size;

/**
 * Reads one frame; undefined for one that is binary or no JSON. What it holds is for the server to get right; but the type may be
 * one that this version does not know, or none, so handlers need a default branch.
 */
export const decode = (frame: unknown): ServerMessage | null | undefined => attempt(() => JSON.parse(frame as string));
