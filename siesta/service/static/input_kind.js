// Whether the learner takes pictures or vectors: for vectors, the page says so and hides what is for pictures.

import { $ } from "./dom.js";
import { subscribe } from "./state.js";

export function setUpInputKind() {
  subscribe(({ info }) => {
    const features = info?.backbone.features ?? null;
    document.body.classList.toggle("takes-vectors", features !== null);
    $("takes-vectors").hidden = features === null;
    $("takes-vectors").textContent = features === null ? "" : `This learner takes vectors of ${features} numbers instead of pictures: programs teach it at /v1/vectors/learn and ask it at /v1/vectors/predict.`;
  });
}
