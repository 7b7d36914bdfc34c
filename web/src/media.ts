/** Binary values and pictures, made into what the wire can hold. */

let blobs = 0;

/** What a picture is, by tag. */
const PICTURE = /^(HTMLCanvasElement|OffscreenCanvas|ImageBitmap|ImageData)$/;

/**
 * A picture becomes a data URL, text in a Blob text, and other binary an embedded
 * resource: the server makes an image or audio item of what is one by its first bytes.
 * What exceeds `limit` bytes is refused before it is read.
 */
export async function toContent(value: any, tag: string, limit: number): Promise<unknown> {
  if (PICTURE.test(tag)) return fromPicture(value, tag);
  const { mimeType, text, blob } = await readMedia(value, tag, limit);
  return text ?? { content: [{ type: "resource", resource: { uri: nextUri(), mimeType, blob } }] };
}

/** A URI for what has none. */
export const nextUri = (): string => "page://blob/" + ++blobs;

/**
 * What such a value holds: text if it is a Blob of that, else `blob`, which is base64.
 * `expected` is the type of what does not say its own, and of pictures where the browser can make that.
 */
export async function readMedia(value: any, tag: string, limit: number, expected?: string): Promise<{ mimeType?: string | undefined; text?: string; blob?: string }> {
  if (PICTURE.test(tag)) {
    const [, mimeType, blob = ""] = /^data:([^;,]*).*?,(.*)/s.exec(fromPicture(value, tag, expected)) ?? [];
    return { mimeType, blob };
  }
  const size = value.size ?? value.byteLength;
  if (size > limit) throw Error(`${tag} of ${size} bytes, the limit is ${limit}`);
  const mimeType: string | undefined = (value.type || "").split(";")[0] || expected;
  if (value.text && /^text|[/+](json|xml)$/.test(mimeType!)) return { mimeType, text: await value.text() };
  const bytes = value.buffer ? new Uint8Array(value.buffer, value.byteOffset, size) : new Uint8Array(value.arrayBuffer ? await value.arrayBuffer() : value);
  let binary = "";
  for (let i = 0; i < size; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return { mimeType, blob: btoa(binary) };
}

/**
 * By way of a canvas and toDataURL: unlike toBlob it needs no idle time, which
 * hidden tabs never get. A tainted canvas throws here, with the browser's message.
 */
function fromPicture(value: any, tag: string, mimeType?: string): string {
  if (!value.toDataURL) {
    const canvas = Object.assign(document.createElement("canvas"), { width: value.width, height: value.height });
    const context: any = canvas.getContext("2d");
    if (tag == "ImageData") context.putImageData(value, 0, 0);
    else context.drawImage(value, 0, 0);
    value = canvas;
  }
  return value.toDataURL(mimeType);
}
