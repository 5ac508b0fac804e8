// Sends images of one class in groups, and finds those that the service refuses.

import { learn } from "./api.js";
import { toUploadable } from "./image_files.js";
import { state } from "./state.js";

const GROUP_SIZE = 8; // images of a request; few, so that counts are updated while many are learned
const MAX_TRIES = 5;

const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

async function learnWithRetry(images, label) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await learn(images, label);
    } catch (problem) {
      if (problem.status !== 429 || attempt === MAX_TRIES) throw problem;
      await pause(problem.wait || 1);
    }
  }
}

function* groups(images) {
  const maxBytes = (state.info?.limits.body_bytes ?? 32e6) * 0.9;
  let group = [], size = 0;
  for (const image of images) {
    if (group.length === GROUP_SIZE || (group.length && size + image.size > maxBytes)) {
      yield group;
      [group, size] = [[], 0];
    }
    group.push(image);
    size += image.size;
  }
  if (group.length) yield group;
}

/** Returns why an image was refused, with its name. */
const withFileName = ({ name }, { message }) => (message.startsWith(name) ? message : `${name}: ${message}`);

/** Learns a group; if it is refused because of one image, sends each on its own. Returns the reasons of refusals. */
async function teachGroup(group, label) {
  try {
    await learnWithRetry(group, label);
    return [];
  } catch (problem) {
    if (![413, 422].includes(problem.status)) throw problem;
    if (group.length === 1) return [withFileName(group[0], problem)];
  }
  const refused = [];
  for (const image of group) refused.push(...(await teachGroup([image], label)));
  return refused;
}

/**
 * Learns images as one class and calls `progress` with the number that is done.
 * Returns how many were learned, and a sentence for each that was refused.
 */
export async function teach(images, label, progress = () => {}) {
  const ready = await Promise.all(images.map(toUploadable));
  const refused = [];
  let done = 0;
  for (const group of groups(ready)) {
    refused.push(...(await teachGroup(group, label)));
    done += group.length;
    progress(done);
  }
  return { taught: done - refused.length, refused };
}
