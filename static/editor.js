/* The editor keeps what is written: as a draft after a pause, and in the tab where the server can't. */
(() => {
  "use strict";

  const form = document.querySelector("[data-autosave]");
  if (!form) return;
  const state = form.querySelector("[data-state]");
  const fields = form.elements;
  const PAUSE = 3000;
  const AGAIN = 15000;
  const TRIES = ["draft_id", "state_read"];
  let timer = 0;
  let changes = 0;
  let saved = 0;
  let running = false;
  let stopped = false;

  const say = (words) => (state.textContent = words);
  const key = () => `unsaved ${fields.registry.value} ${fields.subject.value}`;
  const forget = () => sessionStorage.removeItem(key());

  // What wasn't saved outlives a reload and a new sign-in, with the state of the draft that it was written on.
  const keep = (sent = false) => {
    const kept = { text: fields.text.value, reason: fields.reason.value, sent };
    for (const name of TRIES) kept[name] = fields[name].value;
    try {
      sessionStorage.setItem(key(), JSON.stringify(kept));
    } catch {
      // a full or forbidden store: the text is still in the field
    }
  };

  const later = (pause) => {
    clearTimeout(timer);
    if (!stopped) timer = setTimeout(save, pause);
  };

  const refused = (words, stop) => {
    say(words);
    keep();
    stopped = stop;
  };

  const answered = async (answer, written) => {
    if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
      refused(state.dataset.signedOut, false);
      return later(AGAIN);
    }
    if (!answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Error(String(answer.status));
    const told = await answer.json();
    if (!answer.ok) return refused(told.said, told.stop);
    saved = written;
    for (const name of TRIES) fields[name].value = told[name];
    history.replaceState(history.state, "", told.url);
    if (changes === saved) {
      forget();
      say(told.said);
    }
  };

  const save = async () => {
    if (running || !fields.subject.value) return;
    running = true;
    const written = changes;
    const body = new FormData(form);
    body.set("do", "autosave");
    body.delete("file");
    try {
      await answered(await fetch(form.action, { method: "POST", body, redirect: "manual" }), written);
    } catch {
      refused(state.dataset.away, false);
      later(AGAIN);
    }
    running = false;
    if (changes !== written) later(PAUSE);
  };

  form.addEventListener("input", (event) => {
    if (event.target.type === "file") return;
    changes += 1;
    if (!stopped) say(state.dataset.waiting);
    later(PAUSE);
  });
  form.addEventListener("submit", (event) => {
    clearTimeout(timer);
    stopped = true;
    keep(event.submitter?.value === "submit");
  });
  addEventListener("pagehide", () => {
    if (changes !== saved && !stopped) keep();
  });

  let kept = null;
  try {
    kept = JSON.parse(sessionStorage.getItem(key()));
  } catch {
    // no store
  }
  forget();
  if (!kept || kept.sent || (kept.text === fields.text.value && kept.reason === fields.reason.value)) return;
  fields.text.value = kept.text;
  fields.reason.value = kept.reason;
  for (const name of TRIES) fields[name].value = kept[name];
  form.dispatchEvent(new Event("input"));
  say(state.dataset.restored);
})();
