/** Decoded blocks by name; each is decoded once, when it is first needed. */
const decoded = new Map();

/** @param {string} name @returns {Promise<any>} */
function block(name) {
  if (!decoded.has(name)) decoded.set(name, decode(name));
  return decoded.get(name);
}

async function decode(name) {
  const element = document.querySelector(`script[data-block="${name}"]`);
  if (element === null) throw new Error(`this report has no data named ${name}`);
  const binary = atob(element.textContent ?? "");
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}
