/**
 * `text` without the leading and trailing characters that are in `blanks`. Not a regular expression:
 * `/[ ]+$/` takes quadratic time on a run of blanks inside the text.
 */
export function trimCharacters(text: string, blanks: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && blanks.includes(text.charAt(start))) start++;
  while (end > start && blanks.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}
