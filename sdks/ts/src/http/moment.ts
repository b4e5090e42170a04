const DAY = /^\d{4}-\d{2}-\d{2}$/;
const INSTANT =
  /^(\d{4}-\d{2}-\d{2})[Tt](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Whether `text` is a date, `YYYY-MM-DD`, or an RFC 3339 date-time. */
export function isDateOrDateTime(text: string): boolean {
  const day = DAY.test(text) ? text : INSTANT.exec(text)?.[1];
  return day !== undefined && isDay(day);
}

/** Whether the day exists. `Date` reads 30 February as 1 March, so the round trip reveals it. */
function isDay(day: string): boolean {
  const date = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day);
}
