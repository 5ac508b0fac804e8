// Numbers as people read them.

export const percent = (share, digits = 0) => `${(100 * share).toFixed(digits)} %`;

export const count = (number) => number.toLocaleString("en");

/** So many of something: counted(1, "class", "classes"). */
export const counted = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const pictures = (number) => counted(number, "picture");

/** How sure an answer is: never more than it is, so that one "below 60 %" does not read 60 %. */
export const score = (share) => `${Math.floor(100 * share + 1e-9)} %`;

/** Words of the service as a sentence of the page. */
export const sentence = (words) => words[0].toUpperCase() + words.slice(1) + (/[.!?]$/.test(words) ? "" : ".");

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
