// The button "None of these": the labels that an answer shows are rejected for the picture, which can be undone.

import { forgetSample, reject } from "./api.js";
import { $, attempt, showMessage, whileDisabled } from "./dom.js";

const LEAST_SCORE = 0.01; // of a label that is rejected besides the best one; the page rounds less to 0 %

let top = [], rejected = [];

/** Takes the labels of the answer that is shown, best first, with their scores. */
export function offerRejection(answer) {
  top = answer;
}

function showUndo(ids) {
  rejected = ids;
  $("undo-rejection").hidden = !ids.length;
}

/** `currentPicture` returns the picture that is asked about; `afterwards` is called when its answer may have changed. */
export function setUpRejection(currentPicture, afterwards) {
  const step = (button, message, change) =>
    $(button).addEventListener("click", () =>
      whileDisabled($(button), () =>
        attempt($("correction-message"), async () => {
          await change();
          await afterwards();
          showMessage($("correction-message"), message, "good");
        }),
      ),
    );
  step("none-of-these", "Noted: it will say these less often for such a picture.", async () => {
    const labels = top.filter(({ score }, place) => !place || score >= LEAST_SCORE).map(({ label }) => label);
    showUndo((await reject(await currentPicture(), labels)).ids);
  });
  step("undo-rejection", "Undone.", async () => {
    for (const id of rejected) await forgetSample(id);
    showUndo([]);
  });
}
