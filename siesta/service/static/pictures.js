// Pictures that people choose, drop or paste, as files that the service reads.

const READ_BY_SERVICE = ["image/jpeg", "image/png", "image/webp", "image/gif"];
const LARGE = 8_000_000; // bytes from which a picture is made smaller before it is sent
const LONGEST = 2048; // pixels of its longer side then

/** The file as it is, or a JPEG of it where the browser knows a format that the service does not. */
export async function sendable(file) {
  if (READ_BY_SERVICE.includes(file.type) && file.size < LARGE) return file;
  try {
    const bitmap = await createImageBitmap(file);
    const ratio = Math.min(LONGEST / Math.max(bitmap.width, bitmap.height), 1);
    const canvas = new OffscreenCanvas(Math.round(bitmap.width * ratio), Math.round(bitmap.height * ratio));
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return new File([await canvas.convertToBlob({ type: "image/jpeg", quality: 0.95 })], file.name);
  } catch {
    return file; // the service says what is wrong with it
  }
}

/** Calls `take` with the files that are dropped on an element, and with the folders as {name, files}. */
export function droppable(element, take) {
  const over = (on) => element.classList.toggle("over", on);
  element.addEventListener("dragover", (event) => {
    event.preventDefault();
    event.stopPropagation();
    over(true);
  });
  element.addEventListener("dragleave", (event) => element.contains(event.relatedTarget) || over(false));
  element.addEventListener("drop", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    over(false);
    const items = [...event.dataTransfer.items].filter(({ kind }) => kind === "file");
    const dropped = items.map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() })); // gone after a wait
    const files = dropped.filter(({ entry }) => !entry?.isDirectory).map(({ file }) => file);
    const folders = dropped.filter(({ entry }) => entry?.isDirectory).map(({ entry }) => folder(entry));
    take(files, await Promise.all(folders));
  });
}

async function folder(entry) {
  const reader = entry.createReader(), found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) break;
    found.push(...some.filter((each) => each.isFile));
  }
  const files = await Promise.all(found.map((each) => new Promise((resolve, reject) => each.file(resolve, reject))));
  return { name: entry.name, files: files.filter((file) => file.type.startsWith("image/")) };
}

/** Calls `take` with the pictures of a paste anywhere on the page, and where it happened. */
export function onPaste(take) {
  document.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files].filter((file) => file.type.startsWith("image/"));
    if (!files.length) return;
    event.preventDefault();
    take(files, document.activeElement);
  });
}

/** A drop beside every target must not replace the page by the picture. */
export function ignoreStrayDrops() {
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => event.preventDefault());
}
