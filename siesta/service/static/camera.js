// The webcam, shared by all <video> elements that show it; it is on while there is at least one.

const ERROR_MESSAGES = {
  NotAllowedError: "The browser was not allowed to use the camera: allow it beside the address, then try again.",
  NotFoundError: "No camera was found: use pictures instead.",
  NotReadableError: "The camera is in use by another program: close that one, then try again.",
};

const viewers = new Set();
let stream = null;

async function openCamera() {
  if (!navigator.mediaDevices) {
    throw new Error("Browsers give a camera only to https and localhost pages: serve with --tls-cert, or use pictures.");
  }
  const constraints = { video: { facingMode: { ideal: "environment" }, width: { ideal: 640 }, height: { ideal: 480 } } };
  try {
    return await navigator.mediaDevices.getUserMedia(constraints);
  } catch (error) {
    throw new Error(ERROR_MESSAGES[error.name] || `The camera cannot be used (${error.name}): use pictures instead.`);
  }
}

/** Shows the camera in a <video>; throws an error whose message can be shown. */
export async function startCamera(video) {
  viewers.add(video);
  const shared = (stream ??= openCamera());
  try {
    const opened = await shared;
    if (!viewers.has(video)) return; // stopped while the browser asked for permission
    video.srcObject = opened;
    const [track] = opened.getVideoTracks();
    video.classList.toggle("mirrored", track.getSettings().facingMode !== "environment");
  } catch (error) {
    if (stream === shared) stream = null;
    viewers.delete(video);
    throw error;
  }
  await video.play().catch(() => {}); // stopped before it began to play
}

/** Removes the camera from a <video>; without any left, the camera is turned off. */
export async function stopCamera(video) {
  viewers.delete(video);
  video.srcObject = null;
  if (viewers.size || !stream) return;
  const last = stream;
  stream = null;
  for (const track of (await last).getTracks()) track.stop();
}

/** Returns the present frame of a <video> as a JPEG file whose shorter side has at most `side` pixels. */
export function captureFrame(video, side) {
  const ratio = Math.min(side / Math.min(video.videoWidth, video.videoHeight), 1);
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(video.videoWidth * ratio);
  canvas.height = Math.round(video.videoHeight * ratio);
  canvas.getContext("2d").drawImage(video, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => {
    canvas.toBlob((blob) => resolve(new File([blob], "webcam.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
}
