/** What a function returned, made into the `result` of the wire. */

import { readable, tagOf } from "./readable.ts";

/** Starts that tell a type, whatever the page calls it. In the order of TYPES. */
const MAGIC = /^(?:(\x89PNG)|(\xff\xd8\xff)|(GIF8)|(RIFF....WEBP)|(RIFF....WAVE)|(ID3)|(OggS)|(fLaC))/s;
const TYPES = "image/png image/jpeg image/gif image/webp audio/wav audio/mpeg audio/ogg audio/flac".split(" ");
/** Starts that audio shares with video or with random numbers: trusted only with an audio type. */
const MAYBE_AUDIO = /^(\xff[\xe0-\xff]|\x1aE\xdf|....ftyp)/s;

let blobs = 0;

/**
 * Follows the table "A result on the wire". Undefined stays undefined, which leaves
 * the key out. Text in a Blob becomes text, other binary that is neither image nor
 * audio an embedded resource. What exceeds `limit` bytes is refused before it is read.
 */
export async function toResult(value: any, limit = Infinity): Promise<unknown> {
  if (typeof value == "string") return /^data:(image|audio)\/[^\s,]*,/i.test(value) ? fromDataUrl(value) : value;
  let tag = "";
  try {
    tag = tagOf(value);
  } catch {
    // A revoked proxy, say. readable() marks it.
  }
  if (/^(HTMLCanvasElement|OffscreenCanvas|ImageBitmap|ImageData)$/.test(tag)) return fromPicture(value, tag);
  if (!/^(Blob|File|ArrayBuffer)$/.test(tag) && !ArrayBuffer.isView(value)) return readable(value);
  const size = value.size ?? value.byteLength;
  if (size > limit) throw Error(`${tag} of ${size} bytes, the limit is ${limit}`);
  const type: string = (value.type || "").split(";")[0];
  if (/^text|[/+](json|xml)$/.test(type)) return value.text();
  const bytes = value.buffer ? new Uint8Array(value.buffer, value.byteOffset, size) : new Uint8Array(value.arrayBuffer ? await value.arrayBuffer() : value);
  let binary = "";
  for (let i = 0; i < size; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  const blob = btoa(binary);
  const resource = { uri: "page://blob/" + ++blobs, mimeType: type || undefined, blob };
  return media(binary, type, blob) || { content: [{ type: "resource", resource }] };
}

/** An image or audio item, or nothing when the bytes are neither. */
function media(binary: string, type: string, data: string): unknown {
  const magic = MAGIC.exec(binary);
  const mimeType = magic ? !/^video/.test(type) && TYPES[magic.indexOf(magic[0], 1) - 1] : /^audio/.test(type) && MAYBE_AUDIO.test(binary) && type;
  return mimeType && { content: [{ type: mimeType.slice(0, 5), data, mimeType }] };
}

/** Never the URL itself: one that is no use would only fill the agent's context. */
function fromDataUrl(url: string): unknown {
  const [head, body] = url.split(",") as [string, string];
  const type = head.slice(5).split(";")[0]!.toLowerCase();
  try {
    // A blank was a plus sign once; atob would skip it and shift every byte.
    const binary = atob(body.replace(/ /g, "+"));
    const item = /;base64$/i.test(head) && media(binary, type, btoa(binary));
    if (item) return item;
  } catch {
    // Not base64.
  }
  return `[unusable ${type}, ${url.length} characters]`;
}

/**
 * By way of a canvas and toDataURL: unlike toBlob it needs no idle time, which
 * hidden tabs never get. A tainted canvas throws here, with the browser's message.
 */
function fromPicture(value: any, tag: string): unknown {
  let canvas = value;
  if (!canvas.toDataURL) {
    canvas = Object.assign(document.createElement("canvas"), { width: value.width, height: value.height });
    const context = canvas.getContext("2d");
    if (tag == "ImageData") context.putImageData(value, 0, 0);
    else context.drawImage(value, 0, 0);
  }
  return fromDataUrl(canvas.toDataURL());
}
