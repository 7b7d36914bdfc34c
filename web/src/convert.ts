/** What a function returned, made into the `result` of the wire. */

import type { Additions } from "./extras.ts";
import { attempt, readable, tagOf } from "./readable.ts";

/**
 * Follows the table "A result on the wire". Undefined stays undefined, which leaves
 * the key out. Of pictures and binary, up to `limit` bytes, the extras make what they hold.
 */
export async function toResult(value: any, extras: () => Promise<Additions>, limit = Infinity): Promise<unknown> {
  const tag = mediaTag(value);
  return tag ? (await extras()).toContent(value, tag, limit) : readable(value);
}

/** The tag of a picture or of binary, else `""`. */
export function mediaTag(value: unknown): string {
  // None of a revoked proxy, say. readable() marks it.
  const tag = attempt(() => tagOf(value)) ?? "";
  return /Canvas(Element)?$|^(Image(Bitmap|Data)|Blob|File|ArrayBuffer)$/.test(tag) || ArrayBuffer.isView(value) ? tag : "";
}
