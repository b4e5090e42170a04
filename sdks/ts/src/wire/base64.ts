/** Decode base64; undefined for anything but the canonical encoding, because Node's decoder accepts all. */
export function decodeBase64(text: string): Buffer | undefined {
  const content = Buffer.from(text, "base64");
  return content.toString("base64") === text ? content : undefined;
}
