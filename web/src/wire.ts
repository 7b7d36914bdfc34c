/**
 * The messages of the page protocol, version 1. The Go side has its own copy;
 * both are tested against the frames in bridge/page/testdata/wire.
 */

import type { Agent } from "./context.ts";
import { attempt } from "./readable.ts";

/** What the server may ask for, or tell, a page. */
export type ServerMessage =
  | Welcome
  | Registered
  | Call
  | GetPrompt
  | ReadResource
  | Complete
  | { type: "subscribe"; uri: string }
  | { type: "unsubscribe"; uri: string }
  | Answer
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
  prompts?: { name: string; published: string }[];
  resources?: { uri: string; published: string }[];
  resourceTemplates?: { uriTemplate: string; published: string }[];
  problems?: Problem[];
}

/** What all requests have that a `call_result` answers. */
interface Request {
  id: string;
  timeoutMs?: number;
  progress?: boolean;
  agent?: Partial<Agent>;
}

/** In a second call, what a client answered to `inputRequests`. */
export interface Retry {
  inputResponses?: Record<string, unknown>;
  requestState?: string;
}

/** Runs a tool. */
export interface Call extends Request, Retry {
  type: "call";
  name: string;
  args?: unknown;
}

export interface GetPrompt extends Request, Retry {
  type: "get_prompt";
  name: string;
  arguments?: unknown;
}

/** `uri` is in the page's own form. With a template, that which matched, and its variables. */
export interface ReadResource extends Request, Retry {
  type: "read_resource";
  uri: string;
  uriTemplate?: string;
  variables?: unknown;
}

/** Of a prompt's argument, or of a variable of a template in the page's own form. */
export interface Complete extends Request {
  type: "complete";
  ref: { type: "ref/prompt"; name: string } | { type: "ref/resource"; uri: string };
  argument: { name: string; value: string };
  context?: { arguments?: Record<string, string> };
}

/** What is run for the server, and may be cancelled. */
export type Run = Call | GetPrompt | ReadResource | Complete;

/** Reply to an `ask`. */
export interface Answer {
  type: "answer";
  id: string;
  result?: unknown;
  error?: CallError;
}

/** What was left out, and why. `index` is its place among all of its kind that were declared. */
export interface Problem {
  /** Default: a tool. */
  kind?: "prompt" | "resource";
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
  | { type: "ask"; id: string; callId: string; kind: AskKind; params: unknown }
  | { type: "resource_updated"; uri: string }
  | { type: "rename_connection"; appLabel: string }
  | { type: "leave_channel" }
  | { type: "alive"; id: string };

/** What a page may ask the client for during a call. */
export type AskKind = "elicit" | "sample" | "roots";

/** Replaces everything the page declared before. */
export interface RegisterTools {
  type: "register_tools";
  tools: WireTool[];
  prompts?: WirePrompt[];
  resources?: WireResource[];
  resourceTemplates?: WireTemplate[];
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

/** A prompt without its function, unjudged as well. `complete` of an argument: true when the page can complete it. */
export interface WirePrompt {
  source: "host" | "dynamic";
  name?: unknown;
  title?: unknown;
  description?: unknown;
  arguments?: unknown;
  icons?: unknown;
  timeoutMs?: unknown;
}

/** A resource, likewise. */
export interface WireResource {
  source: "host" | "dynamic";
  uri?: unknown;
  name?: unknown;
  title?: unknown;
  description?: unknown;
  mimeType?: unknown;
  size?: unknown;
  annotations?: unknown;
  icons?: unknown;
  timeoutMs?: unknown;
}

/** Resources by template. */
export interface WireTemplate extends Omit<WireResource, "uri" | "size"> {
  uriTemplate?: unknown;
  /** The variables that the page can complete. */
  complete?: string[];
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
