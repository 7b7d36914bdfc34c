/** What the server's API says: docs/dashboard-api.md. Times are RFC 3339, sizes bytes, durations milliseconds. */

export interface State {
  server: Server;
  sessions: Session[];
  connections: Connection[];
  channels: Channel[];
  workspaces: Workspace[];
  origins: Origins;
  counters: Counters;
  /** Newest last, at most 1,000. */
  calls: Call[];
}

export interface Change {
  server?: Server;
  sessions?: Diff<Session>;
  connections?: Diff<Connection>;
  channels?: Diff<Channel>;
  workspaces?: Diff<Workspace>;
  origins?: Origins;
  counters?: Counters;
  calls?: Diff<Call>;
  notices?: Notice[];
}

export interface Diff<T> {
  /** New or changed, whole. */
  set?: T[];
  /** Ids of those that are no more. */
  gone?: string[];
}

export interface Server {
  /** Another one after each start. */
  epoch: string;
  version: string;
  started: string;
  /** URL for MCP clients. */
  mcp: string;
  base: string;
  pageCode: "allow" | "ask" | "off";
  /** Arguments and results are not kept. */
  redacted: boolean;
}

export interface Client {
  name: string;
  version: string;
}

export interface Session {
  id: string;
  client: Client;
  protocol: string;
  era: "session" | "stateless";
  workspace?: string;
  since: string;
  channels: string[];
  connections: number;
  running: number;
}

export interface Connection {
  id: string;
  label: string;
  prefix: string;
  kind: "session" | "workspace" | "channel" | "root";
  channel?: string;
  workspace?: string;
  session?: string;
  origin: string;
  url: string;
  title: string;
  summary: string;
  state: "joined" | "ready" | "reconnecting" | "suspended" | "pending";
  since: string;
  tools: number;
  prompts: number;
  resources: number;
  problems: number;
  bare: boolean;
  /** Its script speaks the present page protocol. */
  current: boolean;
  /** Grows when its declarations change. */
  rev: number;
}

export interface Channel {
  /** Its name. */
  id: string;
  connections: number;
  sessions: number;
}

export interface Workspace {
  /** Its key. */
  id: string;
  connections: number;
  sessions: number;
}

export interface Origins {
  allowed: { origin: string; by: "flag" | "state" }[];
  waiting: { origin: string; pages: number; since: string }[];
}

export interface Counters {
  calls: number;
  failed: number;
  running: number;
  /** Frames of pages that were refused. */
  refused: number;
  /** Calls that fell out of the list. */
  dropped: number;
}

export interface Call {
  id: string;
  at: string;
  client: Client;
  session?: string;
  by: "agent" | "dashboard";
  connection: string;
  label: string;
  method: "tool" | "prompt" | "resource" | "completion";
  /** As published. */
  name: string;
  state: "running" | "done" | "failed" | "cancelled";
  ms?: number;
  progress?: { progress: number; total?: number; message?: string };
  argBytes: number;
  resultBytes?: number;
  error?: string;
}

export interface CallDetails extends Call {
  arguments?: unknown;
  result?: unknown;
  omitted?: "redacted" | "size";
}

export type ToolOrigin = { kind: "code"; code: string } | { kind: "path"; path: string };

export interface Notice {
  id: string;
  at: string;
  kind: "registered" | "unregistered";
  connection: string;
  label: string;
  published: string;
  /** The page's own name. */
  name: string;
  description: string;
  origin?: ToolOrigin;
  client: Client;
}

/** A connection with all that it declares. */
export interface Details extends Omit<Connection, "tools" | "prompts" | "resources"> {
  tools: Tool[];
  prompts: Prompt[];
  resources: Resource[];
  problemList: Problem[];
}

export interface Tool {
  /** As published. */
  name: string;
  pageName: string;
  title: string;
  description: string;
  inputSchema: unknown;
  outputSchema?: unknown;
  annotations?: Record<string, unknown>;
  example?: unknown;
  source: "host" | "dynamic";
  origin?: ToolOrigin;
  timeoutMs?: number;
}

export interface Prompt {
  name: string;
  pageName: string;
  title: string;
  description: string;
  arguments: { name: string; title: string; description: string; required: boolean }[];
}

export interface Resource {
  uri?: string;
  uriTemplate?: string;
  name: string;
  title: string;
  description: string;
  mimeType: string;
}

export interface Problem {
  name: string;
  index: number;
  reason: string;
  kind?: "prompt" | "resource";
}

/** MCP's CallToolResult, unchecked: it is a page's. */
export interface ToolResult {
  content?: unknown;
  structuredContent?: unknown;
  isError?: boolean;
}

export interface CallAnswer {
  call: string;
  ms: number;
  result: ToolResult;
}
