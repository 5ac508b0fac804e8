// The service's HTTP interface (docs/service.md), a function for each request that the page makes.

import { sentence } from "./format.js";

/** A request that failed, with a sentence to show. */
export class Problem extends Error {
  constructor(words, status = 0, wait = 0) {
    super(words);
    Object.assign(this, { status, wait });
  }
}

export const GONE = "The service does not answer: is `siesta serve` still running?";
export const UNTAUGHT = "Teach it something first.";

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
    throw new Problem(GONE);
  }
  if (!response.ok) throw await problem(response);
  return response.status === 204 ? null : response.json();
}

/** What the service says, as the page does: it names a picture by its file, and knows of no folders and commands. */
function inWords(told) {
  if (/ is asleep( already)?, /.test(told)) return "It sleeps: wake it up first, or wait.";
  if (told.includes(" was not taught anything yet")) return UNTAUGHT;
  const [, file, what] = told.match(/^image \d+ \((.*?)\)((?: is| has|:) .*)$/s) ?? [];
  return file ? `${file}${what}.` : sentence(told);
}

async function problem(response) {
  const told = await response.json().catch(() => ({}));
  const words = told.detail ? inWords(told.detail) : `The service refused this (${response.status} ${response.statusText}).`;
  return new Problem(words, response.status, Number(response.headers.get("retry-after")) || 0);
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

export const learn = (images, label) => request("POST", "v1/learn", form(images, { label }));
export const renameClass = (id, label) => request("PATCH", `v1/classes/${id}`, { label });
export const mergeClass = (id, into) => request("POST", `v1/classes/${id}/merge`, { into });
export const forgetClass = (id) => request("DELETE", `v1/classes/${id}`);

export async function predict(image, unsure) {
  const query = new URLSearchParams({ top: 5, ...unsure });
  return (await request("POST", `v1/predict?${query}`, form([image]))).predictions[0];
}

export const beginSleep = (seconds, policy) => request("POST", "v1/sleep", { seconds, policy });
export const wakeUp = () => request("DELETE", "v1/sleep");
export const useGeneration = (number) => request("POST", `v1/generations/${number}/use`);

export const enter = (token) => request("POST", "v1/session", { token });
