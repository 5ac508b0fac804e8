// One webcam for the whole page: opened when somebody looks, closed when nobody does any more.

const WHY = {
  NotAllowedError: "The browser was not allowed to use the camera: allow it beside the address, then try again.",
  NotFoundError: "No camera was found: use pictures instead.",
  NotReadableError: "The camera is in use by another program: close that one, then try again.",
};

const viewers = new Set();
let stream = null;

async function opened() {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers give a camera only to https and localhost pages: serve with --tls-cert, or use pictures.");
  }
  const wish = { video: { facingMode: { ideal: "environment" }, width: { ideal: 640 }, height: { ideal: 480 } } };
  try {
    return await navigator.mediaDevices.getUserMedia(wish);
  } catch (error) {
    throw new Error(WHY[error.name] || `The camera cannot be used (${error.name}): use pictures instead.`);
  }
}

/** Shows the camera in a <video>; fails with a sentence. */
export async function look(video) {
  viewers.add(video);
  const shared = (stream ??= opened());
  try {
    const seen = await shared;
    if (!viewers.has(video)) return; // left again while the browser asked
    video.srcObject = seen;
    const [track] = seen.getVideoTracks();
    video.classList.toggle("mirrored", track.getSettings().facingMode !== "environment");
  } catch (error) {
    if (stream === shared) stream = null;
    viewers.delete(video);
    throw error;
  }
  await video.play().catch(() => {}); // left while it began to play
}

/** Takes the camera from a <video>; the last one turns it off. */
export async function leave(video) {
  viewers.delete(video);
  video.srcObject = null;
  if (viewers.size || !stream) return;
  const last = stream;
  stream = null;
  for (const track of (await last).getTracks()) track.stop();
}

/** The present frame of a <video> as a JPEG file whose shorter side has `side` pixels at most. */
export function grab(video, side) {
  const ratio = Math.min(side / Math.min(video.videoWidth, video.videoHeight), 1);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(video.videoWidth * ratio);
  canvas.height = Math.round(video.videoHeight * ratio);
  canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => {
    canvas.toBlob((blob) => resolve(new File([blob], "webcam.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
}
