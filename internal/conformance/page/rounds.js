// Calls that take several rounds, as MCP 2026-07-28 has them: what a function needs to
// know it returns as `inputRequests`, and the client calls again with the answers.

import { text } from "./content.js";
import { open, seal } from "./state.js";

const object = (name, type) => ({ type: "object", properties: { [name]: { type } }, required: [name] });
const elicit = (message, requestedSchema) => ({ method: "elicitation/create", params: { message, requestedSchema } });
const sample = (prompt, maxTokens) => ({
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: text(prompt) }], maxTokens },
});
const listRoots = { method: "roots/list", params: {} };

const askName = elicit("What is your name?", object("name", "string"));
const confirm = elicit("Is that right?", object("ok", "boolean"));

// A client's answers may be anything at all. Each of these gives undefined for what is
// no answer, so that the question is put again.
const field = (answer, name, type) =>
  answer?.action === "accept" && typeof answer.content?.[name] === type ? answer.content[name] : undefined;
const sampled = (answer) => [answer?.content].flat().find((c) => c?.type === "text")?.text;
const roots = (answer) => (Array.isArray(answer?.roots) ? answer.roots.map(({ uri }) => uri).join(", ") : undefined);

/** A function that asks one question, until it has the answer. */
const single = (key, request, read, say) => (_, ctx) => {
  const value = read(ctx.inputResponses?.[key]);
  return value === undefined ? { inputRequests: { [key]: request } } : say(value);
};

/** One that has its question confirmed, and takes a confirmation only with the state that it gave out. */
const stateful = (name) => async (_, ctx) => {
  if (ctx.requestState !== undefined) {
    await open(name, ctx.requestState);
    if (field(ctx.inputResponses?.confirm, "ok", "boolean") !== undefined) return "state-ok";
  }
  return { inputRequests: { confirm }, requestState: await seal(name, {}) };
};

async function multipleInputs(_, ctx) {
  const { user_name, greeting, client_roots } = ctx.inputResponses ?? {};
  const [name, hello, seen] = [field(user_name, "name", "string"), sampled(greeting), roots(client_roots)];
  const state = "test_input_required_result_multiple_inputs";
  if (ctx.requestState !== undefined) await open(state, ctx.requestState);
  if (name !== undefined && hello !== undefined && seen !== undefined) return `${hello} ${name}, you work in ${seen}`;
  return {
    inputRequests: { user_name: askName, greeting: sample("Write a greeting.", 50), client_roots: listRoots },
    requestState: await seal(state, {}),
  };
}

async function multiRound(_, ctx) {
  const state = "test_input_required_result_multi_round";
  const known = ctx.requestState === undefined ? {} : await open(state, ctx.requestState);
  const name = known.name ?? field(ctx.inputResponses?.step1, "name", "string");
  if (name === undefined) return { inputRequests: { step1: askName }, requestState: await seal(state, {}) };
  const color = field(ctx.inputResponses?.step2, "color", "string");
  if (color !== undefined) return `${name} likes ${color}.`;
  return {
    inputRequests: { step2: elicit("Which colour do you like?", object("color", "string")) },
    requestState: await seal(state, { name }),
  };
}

function capabilities(_, ctx) {
  if (ctx.inputResponses) return `Answered: ${Object.keys(ctx.inputResponses).join(", ")}`;
  const can = ctx.agent.capabilities;
  const inputRequests = {};
  if (can.elicitation) inputRequests.user_name = askName;
  if (can.sampling) inputRequests.greeting = sample("Write a greeting.", 50);
  if (can.roots) inputRequests.client_roots = listRoots;
  return Object.keys(inputRequests).length ? { inputRequests } : "There is nothing that this client could be asked.";
}

const tool = (name, description, fn) => ({ name: `test_input_required_result_${name}`, description, fn });

export const rounds = [
  tool("elicitation", "Asks for a name.", single("user_name", askName, (a) => field(a, "name", "string"), (name) => `Hello, ${name}!`)),
  tool("sampling", "Asks the model.", single("capital_question", sample("What is the capital of France?", 100), sampled, (said) => `The model says: ${said}`)),
  tool("list_roots", "Asks for the roots.", single("client_roots", listRoots, roots, (uris) => `The roots are: ${uris}`)),
  tool("request_state", "Keeps its state with the client.", stateful("test_input_required_result_request_state")),
  tool("tampered_state", "Notices when its state comes back changed.", stateful("test_input_required_result_tampered_state")),
  tool("multiple_inputs", "Asks the user, the model and for the roots, all at once.", multipleInputs),
  tool("multi_round", "Asks twice.", multiRound),
  tool("capabilities", "Asks for nothing that the client can't answer.", capabilities),
];

export const roundPrompts = [
  {
    name: "test_input_required_result_prompt",
    description: "Asks for its context.",
    fn: single(
      "user_context",
      elicit("What is this about?", object("context", "string")),
      (a) => field(a, "context", "string"),
      (context) => `This is about ${context}.`,
    ),
  },
];
