/** The dates of requests and documents. */

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const INSTANT =
  /^(\d{4}-\d{2}-\d{2})[Tt]((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.\d+)?(?:[Zz]|([+-])((?:[01]\d|2[0-3])):([0-5]\d))$/;

/** The first and the last second that RFC 3339 can express in every language. */
const FIRST_MS = Date.parse("0001-01-01T00:00:00Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59Z");

/** The time, or the nearest one that RFC 3339 can express: files may have others. */
export function rfc3339(ms: number): string {
  return new Date(Math.min(Math.max(ms, FIRST_MS), LAST_MS)).toISOString();
}

/** Whether `text` is a date, `YYYY-MM-DD`, or an RFC 3339 date-time. */
export function isDateOrDateTime(text: string): boolean {
  return epochSeconds(text) !== undefined;
}

/**
 * The seconds from 1970 to a date or an RFC 3339 date-time, without fractions of a second; undefined if
 * `text` is neither.
 */
export function epochSeconds(text: string): number | undefined {
  if (DAY.test(text)) return isDay(text) ? Date.parse(text) / 1000 : undefined;
  const [, day, clock, sign, hours, minutes] = INSTANT.exec(text) ?? [];
  if (day === undefined || clock === undefined || !isDay(day)) return undefined;
  const offset = 3600 * Number(hours ?? 0) + 60 * Number(minutes ?? 0);
  return Date.parse(`${day}T${clock}Z`) / 1000 - (sign === "-" ? -offset : offset);
}

/** Whether the day exists. `Date` reads 30 February as 1 March, so the round trip reveals it. */
function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
