// Image files that users choose, drop or paste, in formats that the service reads.

const ACCEPTED_TYPES = ["image/jpeg", "image/png", "image/webp", "image/gif"];
const LARGE = 8_000_000; // bytes from which an image is scaled down before it is sent
const MAX_SIDE = 2048; // pixels of the longer side of a scaled image

/** Returns the file, or a JPEG of it if it is large or in a format that only the browser reads. */
export async function toUploadable(file) {
  if (ACCEPTED_TYPES.includes(file.type) && file.size < LARGE) return file;
  try {
    const bitmap = await createImageBitmap(file);
    const ratio = Math.min(MAX_SIDE / Math.max(bitmap.width, bitmap.height), 1);
    const canvas = new OffscreenCanvas(Math.round(bitmap.width * ratio), Math.round(bitmap.height * ratio));
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return new File([await canvas.convertToBlob({ type: "image/jpeg", quality: 0.95 })], file.name);
  } catch {
    return file; // the service answers what is wrong with it
  }
}

/** Calls `handle` with the files that are dropped on an element, and with the folders as {name, files}. */
export function onDrop(element, handle) {
  const highlight = (on) => element.classList.toggle("over", on);
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    event.stopPropagation();
    highlight(true);
  });
  element.addEventListener("dragleave", (event) => element.contains(event.relatedTarget) || highlight(false));
  element.addEventListener("drop", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    highlight(false);
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === "file");
    const dropped = items.map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() })); // items are empty after the first await
    const files = dropped.filter(({ entry }) => !entry?.isDirectory).map(({ file }) => file);
    const folders = dropped.filter(({ entry }) => entry?.isDirectory).map(({ entry }) => readFolder(entry));
    handle(files, await Promise.all(folders));
  });
}

async function readFolder(entry) {
  const reader = entry.createReader(), found = [];
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!batch.length) break;
    found.push(...batch.filter((each) => each.isFile));
  }
  const files = await Promise.all(found.map((each) => new Promise((resolve, reject) => each.file(resolve, reject))));
  return { name: entry.name, files: files.filter((file) => file.type.startsWith("image/")) };
}

/** Calls `handle` with the images of a paste anywhere on the page, and with the focused element. */
export function onPaste(handle) {
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files].filter((file) => file.type.startsWith("image/"));
    if (!files.length) return;
    event.preventDefault();
    handle(files, document.activeElement);
  });
}

/** Prevents a drop beside all targets from replacing the page by the image. */
export function ignoreStrayDrops() {
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
}
