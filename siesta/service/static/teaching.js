// Sends pictures of one class in groups, and finds those that the service refuses.

import { learn } from "./api.js";
import { sendable } from "./pictures.js";
import { state } from "./state.js";

const AT_ONCE = 8; // pictures a request: small, so that counts move while many are taught
const TRIES = 5;

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

async function patiently(images, label) {
  for (let tried = 1; ; tried += 1) {
    try {
      return await learn(images, label);
    } catch (problem) {
      if (problem.status !== 429 || tried === TRIES) throw problem;
      await pause(problem.wait || 1);
    }
  }
}

function* groups(images) {
  const most = (state.info?.limits.body_bytes ?? 32e6) * 0.9;
  let group = [], size = 0;
  for (const image of images) {
    if (group.length === AT_ONCE || (group.length && size + image.size > most)) {
      yield group;
      [group, size] = [[], 0];
    }
    group.push(image);
    size += image.size;
  }
  if (group.length) yield group;
}

/** Why a picture was refused, with its name. */
const about = ({ name }, { message }) => (message.startsWith(name) ? message : `${name}: ${message}`);

/** Teaches a group; if it is refused for one of its pictures, each on its own. */
async function teachGroup(group, label) {
  try {
    await patiently(group, label);
    return [];
  } catch (problem) {
    if (![413, 422].includes(problem.status)) throw problem;
    if (group.length === 1) return [about(group[0], problem)];
  }
  const refused = [];
  for (const image of group) refused.push(...(await teachGroup([image], label)));
  return refused;
}

/**
 * Teaches pictures as one class. `progress` is told how many of them are through.
 * Returns how many were taught, and a sentence for each that was refused.
 */
export async function teach(images, label, progress = () => {}) {
  const ready = await Promise.all(images.map(sendable));
  const refused = [];
  let through = 0;
  for (const group of groups(ready)) {
    refused.push(...(await teachGroup(group, label)));
    through += group.length;
    progress(through);
  }
  return { taught: through - refused.length, refused };
}
