/* The editor's text is checked while it is written: after a pause, and by the same check as its button's. */
(() => {
  "use strict";

  const form = document.querySelector("[data-live]");
  if (!form) return;
  const state = document.querySelector("[data-live-state]");
  const parts = ["told", "told-changes"].map((id) => document.getElementById(id));
  const said = document.getElementById("said");
  const CHECKED = /^(registry|subject|schema_type|text|ref_\w+)$/;
  const PAUSE = 600;
  const AGAIN = 15000;
  let timer = 0;
  let changes = 0;
  let running = null;
  let held = null;

  const say = (words) => {
    state.textContent = words;
  };

  const later = (pause) => {
    clearTimeout(timer);
    timer = setTimeout(check, pause);
  };

  // The focus stays where it is: a part that has it is put in place when it has gone elsewhere.
  const show = (answer) => {
    held = parts.some((part) => part.contains(document.activeElement)) ? answer : null;
    if (held) return;
    for (const part of parts) {
      const fresh = answer.getElementById(part.id);
      if (fresh.innerHTML.trim() === part.innerHTML.trim()) continue;
      part.replaceChildren(...fresh.childNodes);
      part.dispatchEvent(new CustomEvent("htmx:afterSettle", { bubbles: true }));
    }
    const words = answer.querySelector("[data-said]").textContent;
    if (said.textContent !== words) said.textContent = words;
    say(state.dataset.done);
  };

  // One request at a time: the server would go on with one that is aborted, so the next waits for its answer, which is
  // dropped when the text has changed since. A server that takes long is asked less often.
  const check = async () => {
    if (running) return;
    const sent = changes;
    const began = performance.now();
    const body = new FormData(form);
    body.set("do", "live");
    body.delete("file");
    running = new AbortController();
    try {
      const answer = await fetch(form.action, { method: "POST", body, redirect: "manual", signal: running.signal });
      if (answer.type === "opaqueredirect" || answer.status === 401 || answer.status === 403) {
        say(state.dataset.signedOut);
      } else if (answer.status === 400 || answer.status === 413) {
        say(state.dataset.refused); // the same text would be refused again
      } else {
        if (!answer.ok) throw new Error(String(answer.status));
        const text = await answer.text();
        if (sent === changes) show(new DOMParser().parseFromString(text, "text/html"));
      }
    } catch (error) {
      if (error.name !== "AbortError") {
        say(state.dataset.away);
        if (sent === changes) later(AGAIN);
      }
    }
    running = null;
    if (sent !== changes) later(Math.max(PAUSE, performance.now() - began));
  };

  const stop = () => {
    clearTimeout(timer);
    running?.abort();
  };

  form.addEventListener("input", (event) => {
    if (event.target !== form && !CHECKED.test(event.target.name)) return;
    changes += 1;
    held = null;
    say(state.dataset.waiting);
    later(PAUSE);
  });
  for (const part of parts)
    part.addEventListener("focusout", () => setTimeout(() => held && show(held)));
  form.addEventListener("submit", stop);
  addEventListener("pagehide", stop);
  if (!form.dataset.live && form.elements.text.value) later(PAUSE);
})();
