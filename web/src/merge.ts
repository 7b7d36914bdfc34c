/** Brings the tools of all sources together. */

import { RESERVED, type Tool } from "./dispatch.ts";
import { attempt } from "./readable.ts";
import { callable, type Offer } from "./tools.ts";

/** Where a tool comes from, in the order of precedence. */
const BUS = "the tool bus";
const OWN = "__mcpTools";
const MODEL = "WebMCP";

/** All as offers. One whose name is taken by an earlier source is left out, with the reason. */
export function merge(own: Offer[], bus: unknown[], model: Tool[]): Offer[] {
  const taken = new Map<string, string>();
  const offers: Offer[] = [];
  const add = (source: string, some: Offer[]) => {
    for (const offer of some) offers.push(RESERVED.test(nameOf(offer)) ? { ...offer, problem: "the name is reserved" } : withProblem(offer));
    // Afterwards: whether equal names of one source are too many, the server judges.
    for (const offer of some) if (callable([offer]).length && !taken.has(nameOf(offer))) taken.set(nameOf(offer), source);
  };
  const withProblem = (offer: Offer): Offer => {
    const source = taken.get(nameOf(offer));
    return source ? { ...offer, problem: `the name is taken by a tool of ${source}` } : offer;
  };
  add(OWN, own);
  add(BUS, bus.map((tool) => ({ tool, dynamic: true })));
  add(MODEL, model.map((tool) => ({ tool, model: true })));
  return offers;
}

/** The one that is called by that name. */
export const findOffer = (offers: Offer[], name: string): Offer | undefined => offers.find((offer) => callable([offer]).length && nameOf(offer) === name);

/** For people: where it comes from. */
export const sourceOf = ({ dynamic, model }: Offer): string => (dynamic ? BUS : model ? MODEL : OWN);

const nameOf = ({ tool }: Offer): string => attempt(() => String(tool.name)) ?? "";
