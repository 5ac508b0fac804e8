// Client of the HTTP API (docs/service.md) with a function for each request that the page makes.

import { sentence } from "./format.js";

/** Failed request: its message can be shown, `wait` is the number of seconds before a retry. */
export class Problem extends Error {
  constructor(message, status = 0, wait = 0) {
    super(message);
    Object.assign(this, { status, wait });
  }
}

export const NO_CONNECTION = "The service does not answer: is `siesta serve` still running?";
export const NOTHING_LEARNED = "Teach it something first.";

async function request(method, path, body) {
  const options = { method, headers: {} };
  if (body instanceof FormData) options.body = body;
  else if (body) {
    options.body = JSON.stringify(body);
    options.headers["content-type"] = "application/json";
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Problem(NO_CONNECTION);
  }
  if (!response.ok) throw await problem(response);
  return response.status === 204 ? null : response.json();
}

/** Rewrites a problem's detail for the page, whose users know files, but no folders, commands or numbers of images. */
function pageSentence(detail) {
  if (/ is asleep( already)?, /.test(detail)) return "It sleeps: wake it up first, or wait.";
  if (detail.includes(" was not taught anything yet")) return NOTHING_LEARNED;
  const [, file, reason] = detail.match(/^image \d+ \((.*?)\)((?: is| has|:) .*)$/s) ?? [];
  return file ? `${file}${reason}.` : sentence(detail);
}

async function problem(response) {
  const body = await response.json().catch(() => ({}));
  const message = body.detail ? pageSentence(body.detail) : `The service refused this (${response.status} ${response.statusText}).`;
  return new Problem(message, response.status, Number(response.headers.get("retry-after")) || 0);
}

function form(images, fields = {}) {
  const data = new FormData();
  for (const image of images) data.append("image", image, image.name || "picture.jpg");
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  return data;
}

export const readInfo = () => request("GET", "v1/info");
export const readClasses = async () => (await request("GET", "v1/classes")).classes;
export const readGenerations = async () => (await request("GET", "v1/generations")).generations;
export const thumbnail = (sampleId) => `v1/samples/${sampleId}/thumbnail`;

export function reject(image, labels) {
  const data = form([image]);
  for (const label of labels) data.append("label", label);
  return request("POST", "v1/reject", data);
}
export const forgetSample = (id) => request("DELETE", `v1/samples/${id}`);

export const learn = (images, label) => request("POST", "v1/learn", form(images, { label }));
export const renameClass = (id, label) => request("PATCH", `v1/classes/${id}`, { label });
export const mergeClass = (id, into) => request("POST", `v1/classes/${id}/merge`, { into });
export const forgetClass = (id) => request("DELETE", `v1/classes/${id}`);

export async function predict(image, options) {
  const query = new URLSearchParams({ top: 5, ...options });
  return (await request("POST", `v1/predict?${query}`, form([image]))).predictions[0];
}

export const beginSleep = (seconds, policy) => request("POST", "v1/sleep", seconds === null ? { policy } : { seconds, policy });
export const wakeUp = () => request("DELETE", "v1/sleep");
export const useGeneration = (number) => request("POST", `v1/generations/${number}/use`);

export const beginSession = (token) => request("POST", "v1/session", { token });
