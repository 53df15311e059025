// Numbers and times for people: always with a unit, never with more digits than are of use.

export const NOTHING = "–";
const END_OF_TIME = 2 ** 62;
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const whole = new Intl.NumberFormat("en-US");

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** Three digits: 7.25, 72.5, 725. */
function digits(value) {
  const size = Math.abs(value);
  const places = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return value.toFixed(places);
}

/** 1,234 and 56.7 k. */
export function count(value) {
  if (!isNumber(value)) return NOTHING;
  if (Math.abs(value) < 10_000) return whole.format(Math.round(value));
  if (Math.abs(value) < 1e6) return `${digits(value / 1e3)} k`;
  return Math.abs(value) < 1e9 ? `${digits(value / 1e6)} M` : `${digits(value / 1e9)} G`;
}

/** 1,234,567 */
export const exactly = (value) => (isNumber(value) ? whole.format(value) : NOTHING);

/** 12.5 /s */
export function rate(value) {
  if (!isNumber(value)) return NOTHING;
  return `${value >= 100 || value === 0 ? count(value) : digits(Math.round(value * 100) / 100)} /s`;
}

/** 45 % */
export function share(value) {
  if (!isNumber(value)) return NOTHING;
  return value > 0 && value < 0.01 ? "< 1 %" : `${Math.round(value * 100)} %`;
}

/** 64.0 MB; a megabyte has 10⁶ bytes. */
export function bytes(value) {
  if (!isNumber(value)) return NOTHING;
  let size = value;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (Math.abs(size) < 999.5) return `${unit === "B" ? Math.round(size) : digits(size)} ${unit}`;
    size /= 1000;
  }
  return `${digits(size)} TB`;
}

/** 250 ms, 4.2 s, 3 min 20 s, 2 h 5 min, 3 d 4 h. */
export function duration(ms) {
  if (!isNumber(ms) || ms < 0) return NOTHING;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const parts = [
    [Math.floor(seconds / 86_400), "d"], [Math.floor(seconds / 3600) % 24, "h"], [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  const shown = parts.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map((part) => part.join(" ")).join(" ");
}

/** How far a watermark lies behind; one that is ahead, or at the end of time, is not behind. */
export function lag(ms) {
  if (!isNumber(ms)) return NOTHING;
  return ms <= 0 ? "0 ms" : duration(ms);
}

/** A watermark as a time, with its two ends in words. */
export function watermark(ms) {
  if (!isNumber(ms) || ms < -END_OF_TIME) return "none yet";
  return ms > END_OF_TIME ? "end of input" : moment(ms);
}

/** 14:03:07, with the day if that is not the day of `now`. */
export function time(ms, now = Date.now()) {
  if (!isNumber(ms) || ms < 0) return NOTHING;
  const sameDay = new Date(ms).toDateString() === new Date(now).toDateString();
  return sameDay ? clock.format(ms) : moment(ms);
}

/** Day and time. */
export function moment(ms) {
  return isNumber(ms) && ms >= 0 && Math.abs(ms) < 8.6e15 ? `${day.format(ms)}, ${clock.format(ms)}` : NOTHING;
}

/** "4 s ago" */
export const ago = (ms) => (isNumber(ms) ? `${duration(Math.max(0, ms))} ago` : NOTHING);

/** "1 checkpoint", "2 checkpoints" */
export const many = (number, word) => `${whole.format(number)} ${word}${number === 1 ? "" : "s"}`;

/** The state of a job or task as a word. */
export const word = (state) => (state ? state.charAt(0) + state.slice(1).toLowerCase().replace("_", " ") : NOTHING);
