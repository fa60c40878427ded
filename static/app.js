/* What the pages do beyond links and forms; everything works without it. */
(() => {
  "use strict";

  const typing = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable], [data-typing]");

  // The zone of time: the server shows exact times in it from the next page on.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`zone=${zone}`))
    document.cookie = `zone=${zone}; path=/ui/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;

  // Theme: apply at once, store through the same form (a cookie set by the server).
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("[data-theme-form]");
    if (!form || !event.submitter) return;
    event.preventDefault();
    const chosen = event.submitter.value;
    const body = new FormData(form, event.submitter);
    fetch(form.action, { method: "POST", body, credentials: "same-origin", redirect: "manual" }).then(
      (answer) => {
        if (!answer.ok && answer.type !== "opaqueredirect") throw answer;
      },
    ).catch(() => form.submit());
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    for (const button of form.querySelectorAll("[aria-pressed]"))
      button.setAttribute("aria-pressed", String(button === event.submitter));
    form.closest("details").open = false;
  });

  // Menus close on Escape, and when a click or the focus goes elsewhere, which they might cover.
  for (const gone of ["click", "focusin"])
    document.addEventListener(gone, (event) => {
      for (const menu of document.querySelectorAll("[data-menu][open]"))
        if (!menu.contains(event.target)) menu.open = false;
    });

  // Dictating presses keys of one letter: they can be off.
  const keys = document.querySelector("[data-turn-keys] input") ?? {};
  keys.checked = localStorage.getItem("keys") !== "off";
  document.addEventListener("change", (event) => {
    if (event.target === keys) localStorage.setItem("keys", keys.checked ? "on" : "off");
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape")
      for (const menu of document.querySelectorAll("[data-menu][open]")) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    // A search box keeps its text.
    if (event.key === "Escape" && event.target.dataset?.search === "") event.preventDefault(event.target.blur());
    if (!keys.checked || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (event.key === "/") {
      const box = document.querySelector("main [data-search]") ?? document.querySelector("[data-search]");
      if (box) {
        event.preventDefault();
        box.focus();
        box.select();
      }
    }
    if (event.key === "n" || event.key === "p") step(event.key === "n" ? 1 : -1);
    if (event.key === "j" || event.key === "k") row(event.key === "j" ? 1 : -1);
    if (event.key === "x") document.activeElement.closest("[data-rows] tr")?.querySelector(".pick input")?.click();
    if (event.key === "?") document.querySelector("[data-keys]")?.toggleAttribute("open");
    if (event.key === "u") document.querySelector("[data-views] :is(a:not([aria-current]), [aria-pressed=false])")?.click();
    if (event.key === "c") comment(event);
  });

  // c: comment on the focused change, or on the whole.
  const comment = (event) => {
    const link = document.activeElement?.closest("[data-change]")?.querySelector("[data-comment]");
    const field = document.querySelector("#comment textarea");
    if (link) link.click();
    else if (field) {
      event.preventDefault();
      field.focus();
    }
  };

  // A narrow navigation scrolls to where we are, in the first frame.
  const here = document.querySelector(".nav [aria-current]");
  if (here)
    requestAnimationFrame(() => {
      here.parentElement.scrollLeft = here.offsetLeft - here.parentElement.clientWidth / 2 + here.offsetWidth / 2;
    });

  // n and p: changes of a comparison.
  const step = (by) => {
    const changes = [...document.querySelectorAll("[data-change]")];
    if (!changes.length) return;
    const at = changes.indexOf(document.activeElement?.closest?.("[data-change]"));
    const next = changes[Math.min(Math.max(at < 0 ? (by > 0 ? 0 : changes.length - 1) : at + by, 0), changes.length - 1)];
    next.closest("details")?.setAttribute("open", "");
    next.focus();
    next.scrollIntoView({ block: "center" });
  };

  // j and k: rows of a list, by what each opens.
  const row = (by) => {
    const rows = [...document.querySelectorAll("[data-rows] tbody tr")];
    const at = rows.indexOf(document.activeElement.closest("[data-rows] tr"));
    rows[Math.min(Math.max(at < 0 && by < 0 ? rows.length - 1 : at + by, 0), rows.length - 1)]?.querySelector(".primary")?.focus();
  };

  // What is chosen in a list stays so on other pages.
  const keep = (root) => {
    const form = root.querySelector("[data-kept]");
    if (!form) return;
    const key = `chosen ${form.dataset.kept}`;
    const chosen = new Set(JSON.parse(sessionStorage.getItem(key) ?? "[]"));
    const boxes = [...document.querySelectorAll('.pick input[form="bulk"]')];
    const said = form.querySelector("[data-elsewhere]");
    const others = () => [...chosen].filter((value) => !boxes.some((box) => box.value === value));
    const show = () => {
      said.hidden = !(said.querySelector("b").textContent = others().length);
      sessionStorage.setItem(key, JSON.stringify([...chosen]));
    };
    form.addEventListener("submit", (event) => "stays" in event.submitter.dataset || sessionStorage.removeItem(key));
    form.addEventListener("formdata", (event) => others().forEach((value) => event.formData.append("subject", value)));
    for (const box of boxes) {
      box.checked ||= chosen.has(box.value);
      box.addEventListener("change", () => (chosen[box.checked ? "add" : "delete"](box.value), show()));
    }
    said.querySelector("button").addEventListener("click", () => {
      for (const box of boxes) box.checked = false;
      chosen.clear();
      show();
    });
    show();
  };
  keep(document);

  const flash = (label, words) => {
    label.dataset.before ??= label.textContent;
    label.textContent = document.body.dataset[words];
    setTimeout(() => (label.textContent = label.dataset.before), 1600);
  };

  // A link to a text (a page as Markdown) copies it; without a clipboard it stays a link.
  document.addEventListener("click", async (event) => {
    const link = event.target.closest?.("[data-copy-page]");
    if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    try {
      const answer = await fetch(link.href, { credentials: "same-origin" });
      if (!answer.ok) throw answer;
      await navigator.clipboard.writeText(await answer.text());
      flash(link.querySelector("span"), "copied");
    } catch {
      location.href = link.href;
    }
  });

  // Copy buttons appear where there is a clipboard.
  const offerCopies = (root) => {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("[data-copy][hidden]")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        const say = (words) => () => flash(button.querySelector("span"), words);
        const text = document.querySelector(button.dataset.copy).textContent;
        navigator.clipboard.writeText(text).then(say("copied"), say("copyRefused"));
      });
    }
  };
  offerCopies(document);

  // A page that loads itself again gives the focus back to what had it, where that is still there.
  const marked = (one) =>
    [one.tagName, one.id, one.getAttribute("href"), one.name, one.textContent.trim().slice(0, 200)].join("\n");
  document.addEventListener("htmx:beforeOnLoad", (event) => {
    const one = document.activeElement?.closest("body *");
    if (one && event.detail.xhr.getResponseHeader("HX-Refresh") === "true")
      sessionStorage.setItem("focus", marked(one));
  });
  const lost = sessionStorage.getItem("focus");
  sessionStorage.removeItem("focus");
  if (lost)
    [...document.querySelectorAll(lost.split("\n")[0])].find((one) => marked(one) === lost)?.focus({ preventScroll: true });

  // A refused form begins where it is wrong.
  document.querySelector("main:not(:has([role=alert])) [aria-invalid=true]")?.focus();

  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful) document.getElementById("away").replaceChildren();
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    offerCopies(event.target.parentElement ?? document);
    if (event.target.id !== "list") return;
    keep(document);
    const many = event.target.querySelector(".paging .num, .empty-title");
    document.getElementById("said").textContent = many?.textContent ?? "";
  });
})();
