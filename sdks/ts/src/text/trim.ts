/**
 * `text` without the leading and trailing characters that are among `blanks`. No regular expression:
 * `/[ ]+$/` takes time that grows with the square of a run of blanks inside the text.
 */
export function trimmed(text: string, blanks: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && blanks.includes(text.charAt(start))) start++;
  while (end > start && blanks.includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}
