/** The longest tokens, in bytes: FTS5 cuts a longer one, and stems none of more than 64. */
const LONGEST_TOKEN = 32_768;
const LONGEST_STEMMED = 64;

type Suffix = readonly [old: string, replacement: string];

/** Of the suffixes of a step, the first that a token has counts. */
const SECOND: readonly Suffix[] = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["logi", "log"],
  ["bli", "ble"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
];

const THIRD: readonly Suffix[] = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
];

const FOURTH: readonly Suffix[] =
  "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"
    .split(" ")
    .map((suffix) => [suffix, ""]);

/**
 * The stem of a token by Porter's algorithm (M. F. Porter, "An algorithm for suffix stripping", Program
 * 14(3), 1980) as FTS5 applies it: to bytes, so each character of the token stands for one.
 */
export function stem(token: string): string {
  if (token.length > LONGEST_TOKEN) return token.slice(0, LONGEST_TOKEN);
  if (token.length < 3 || token.length > LONGEST_STEMMED) return token;
  let stemmed = stemParticiple(stemPlural(token));
  const rest = stemmed.slice(0, -1);
  if (stemmed.endsWith("y") && hasVowel(rest)) stemmed = `${rest}i`;
  stemmed = replaceSuffix(stemmed, SECOND, isLong);
  stemmed = replaceSuffix(stemmed, THIRD, isLong);
  stemmed = replaceSuffix(stemmed, FOURTH, isVeryLong);
  return stemEnd(stemmed);
}

function replaceSuffix(
  token: string,
  suffixes: readonly Suffix[],
  applies: (stem: string) => boolean,
): string {
  const suffix = suffixes.find(([old]) => token.length > old.length && token.endsWith(old));
  if (suffix === undefined) return token;
  const [old, replacement] = suffix;
  const kept = token.slice(0, -old.length);
  if (old === "ion" && !/[st]$/.test(kept)) return token;
  return applies(kept) ? kept + replacement : token;
}

function stemPlural(token: string): string {
  if (!token.endsWith("s") || token.endsWith("ss")) return token;
  return token.slice(0, /.(?:sse|ie)s$/.test(token) ? -2 : -1);
}

function stemParticiple(token: string): string {
  if (/.eed$/.test(token)) return isLong(token.slice(0, -3)) ? token.slice(0, -1) : token;
  const kept = token.replace(/(?:ing|ed)$/, "");
  if (kept === token || !hasVowel(kept)) return token;
  if (/.(?:at|bl|iz)$/.test(kept)) return `${kept}e`;
  if (/([^aeioulsz])\1$/.test(kept)) return kept.slice(0, -1);
  return measure(kept) === 1 && endsShort(kept) ? `${kept}e` : kept;
}

function stemEnd(token: string): string {
  let stemmed = token;
  const rest = token.slice(0, -1);
  if (token.endsWith("e") && (isVeryLong(rest) || (measure(rest) === 1 && !endsShort(rest)))) {
    stemmed = rest;
  }
  return stemmed.endsWith("ll") && isVeryLong(stemmed.slice(0, -1))
    ? stemmed.slice(0, -1)
    : stemmed;
}

function isLong(stem: string): boolean {
  return measure(stem) > 0;
}

function isVeryLong(stem: string): boolean {
  return measure(stem) > 1;
}

/** How many vowels, groups of them as one, a consonant follows. */
function measure(stem: string): number {
  return shapeOf(stem).split("vc").length - 1;
}

function hasVowel(stem: string): boolean {
  return shapeOf(stem).includes("v");
}

/** Whether the stem ends with a consonant, a vowel and a consonant other than w, x and y. */
function endsShort(stem: string): boolean {
  return shapeOf(stem).endsWith("cvc") && !/[wxy]$/.test(stem);
}

/** A `v` for each vowel and a `c` for each consonant; y is a vowel after a consonant. */
function shapeOf(stem: string): string {
  let shape = "";
  for (const letter of stem) {
    const isVowel = "aeiou".includes(letter) || (letter === "y" && shape.endsWith("c"));
    shape += isVowel ? "v" : "c";
  }
  return shape;
}
