/** Requests to the server. Each failure is an Error whose message a person can read. */

import { signal } from "@preact/signals";
import type { CallAnswer, CallDetails, Details } from "./types.ts";

/** What the server said no with (RFC 9457), or 0 when it could not be asked. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly type = "",
  ) {
    super(message);
  }
}

const BEARER = "jsbridge-bearer";

let token = "";
let bearer = "";

/** The server wants its access token. `refused`: it did not take the one before. `asking`: the user did not put the question away. */
export const lock = signal<{ refused: boolean; asking: boolean } | undefined>(undefined);
/** Whether one was needed. */
export const guarded = signal(false);

let unlocked: (() => void)[] = [];

export function start(): void {
  token = document.querySelector<HTMLMetaElement>("meta[name=jsbridge-token]")?.content ?? "";
  bearer = remembered();
  guarded.value = bearer != "";
}

function remembered(): string {
  try {
    return sessionStorage.getItem(BEARER) ?? "";
  } catch {
    return ""; // Storage may be forbidden.
  }
}

export const authorization = (): Record<string, string> => (bearer ? { Authorization: `Bearer ${bearer}` } : {});

/** Asks the user for the access token. Resolves once there is one. */
export function unlock(): Promise<void> {
  lock.value ??= { refused: bearer != "", asking: true };
  return new Promise((resolve) => unlocked.push(resolve));
}

export function giveBearer(given: string): void {
  bearer = given;
  guarded.value = true;
  try {
    sessionStorage.setItem(BEARER, given);
  } catch {
    // Then it is asked for again after a reload.
  }
  lock.value = undefined;
  for (const resolve of unlocked.splice(0)) resolve();
}

/** The token of the server's present run, from the page that it serves now. */
export async function refreshToken(): Promise<void> {
  const page = await fetch("/", { headers: authorization(), cache: "no-store" });
  // Not by DOMParser: reading HTML is what Trusted Types are there to stop.
  token = /<meta name="jsbridge-token" content="([^"]*)"/.exec(await page.text())?.[1] ?? token;
}

async function request(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    const headers: Record<string, string> = { Accept: "application/json", ...authorization() };
    if (method != "GET") Object.assign(headers, { "Content-Type": "application/json", "X-Jsbridge-Token": token });
    let response: Response;
    try {
      response = await fetch(path, { method, headers, cache: "no-store", ...(method != "GET" && { body: JSON.stringify(body ?? {}) }), ...(signal && { signal }) });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ApiError(0, "jsbridge can't be reached. Is it running?");
    }
    if (response.ok) return response;
    const problem = await readProblem(response);
    if (response.status == 401 && attempt < 3) await unlock();
    else if (response.status == 403 && problem.type.endsWith("#token") && attempt == 0) await refreshToken();
    else throw problem;
  }
}

async function readProblem(response: Response): Promise<ApiError> {
  let problem: { type?: unknown; title?: unknown; detail?: unknown } = {};
  try {
    problem = await response.json();
  } catch {
    // The status has to do.
  }
  const message = [problem.detail, problem.title].find((one) => typeof one == "string" && one) ?? `The server answered ${response.status}.`;
  return new ApiError(response.status, message as string, String(problem.type ?? ""));
}

const get = async <T>(path: string): Promise<T> => (await request("GET", path)).json();
const post = (path: string, body?: unknown, signal?: AbortSignal) => request("POST", path, body, signal);
const at = (id: string, ...rest: string[]) => "/api/connections/" + [id, ...rest].map(encodeURIComponent).join("/");

export async function getConnection(id: string): Promise<Details> {
  const got = await get<Details>(at(id));
  return { ...got, tools: got.tools ?? [], prompts: got.prompts ?? [], resources: got.resources ?? [], problemList: got.problemList ?? [] };
}

export const identify = (id: string) => post(at(id, "identify"));
export const rename = (id: string, label: string) => post(at(id, "rename"), { label });
export const move = (id: string, to: string) => post(at(id, "move"), { to });
export const disconnect = (id: string) => post(at(id, "disconnect"));
export const removeTool = (id: string, pageName: string) => request("DELETE", at(id, "tools", pageName));
export const getCall = (id: string) => get<CallDetails>("/api/calls/" + encodeURIComponent(id));
export const cancelCall = (id: string) => post(`/api/calls/${encodeURIComponent(id)}/cancel`);
export const approve = (origin: string) => post("/api/origins", { origin });
export const refuse = (origin: string) => request("DELETE", "/api/origins", { origin });

export async function addTool(id: string, tool: Record<string, unknown>): Promise<{ published: string; name: string; confirmation: string }> {
  return (await post(at(id, "tools"), tool)).json();
}

export async function callTool(id: string, tool: string, args: unknown, signal: AbortSignal): Promise<CallAnswer> {
  return (await post(at(id, "call"), { tool, arguments: args }, signal)).json();
}

export interface SnippetRequest {
  form: "import" | "script" | "inline";
  workspace?: string;
  connect?: string;
  session?: string;
}

export async function getSnippet(wanted: SnippetRequest): Promise<{ snippet: string; connect: string }> {
  return (await post("/api/snippets", wanted)).json();
}

/** All calls, as a file. */
export const getCallsFile = async (): Promise<Blob> => (await request("GET", "/api/calls.jsonl")).blob();
