// Formats for numbers, sizes, durations and dates.

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

export const count = (number) => number.toLocaleString("en");

/** Returns a count with its noun: counted(1, "class", "classes"). */
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const pictures = (number) => counted(number, "picture");

/** Returns a score or familiarity in percent, rounded down, so that one below a threshold of 60 % never reads 60 %. */
export const score = (share) => `${Math.floor(100 * share + 1e-9)} %`;

/** Returns text of the service as a sentence with a capital letter and a full stop. */
export const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");

const INVISIBLE = /(?<!\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?)\u200D|(?<!\p{Emoji})\uFE0F|(?![\u200D\uFE0F])\p{Default_Ignorable_Code_Point}|(?! )\p{Zs}|\u2800/gu;
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u;

/** Returns a label with its invisible and direction-changing characters as [U+200B], so that it cannot pass for another. */
export const visible = (label) => label.replace(INVISIBLE, (each) => `[U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);

/** Returns a label for the middle of a sentence, whose order it does not change if it is written from right to left. */
export const isolated = (label) => (RIGHT_TO_LEFT.test(label) ? `\u2068${visible(label)}\u2069` : visible(label));

export function bytes(number) {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  let step = 0;
  while (number >= 1000 && step < units.length - 1) {
    number /= 1000;
    step += 1;
  }
  return `${step && number < 100 ? number.toFixed(1) : Math.round(number)} ${units[step]}`;
}

export function duration(seconds) {
  if (seconds < 59.5) return `${Math.max(Math.round(seconds), 0)} s`;
  if (seconds < 3570) {
    const minutes = Math.floor(seconds / 60), rest = Math.round(seconds % 60);
    return minutes < 5 && rest ? `${minutes} min ${rest} s` : `${Math.round(seconds / 60)} min`;
  }
  const hours = seconds / 3600;
  return `${hours % 1 > 0.05 ? hours.toFixed(1) : Math.round(hours)} h`;
}

export function moment(iso) {
  const then = new Date(iso), ago = (Date.now() - then) / 1000;
  if (ago < 60) return "just now";
  if (ago < 3600) return `${Math.round(ago / 60)} min ago`;
  const time = then.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (then.toDateString() === new Date().toDateString()) return `today ${time}`;
  return `${then.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}
