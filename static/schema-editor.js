/* A schema's textarea becomes a code editor; without this script it stays a textarea, which is what forms send. */
(() => {
  "use strict";

  const {
    Annotation, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, Compartment, completionKeymap, defaultKeymap, EditorState,
    EditorView, HighlightStyle, history, historyKeymap, indentOnInput, indentWithTab, json, keymap, lineNumbers,
    protobuf, StreamLanguage, syntaxHighlighting, tags,
  } = CodeMirror;

  const TEXT_COLUMNS = { fontFamily: "var(--font-mono)", fontSize: "0.8125rem", lineHeight: "1.55" };
  const THEME = EditorView.theme({
    "&": { color: "var(--ink)", backgroundColor: "var(--surface)", height: "100%" },
    "&.cm-focused": { outline: "none" },
    ".cm-scroller": { ...TEXT_COLUMNS, overflow: "auto", fontVariantLigatures: "none" },
    ".cm-content": { caretColor: "var(--ink)", tabSize: "2" },
    ".cm-gutters": { color: "var(--ink-3)", backgroundColor: "var(--sunken)", borderInlineEnd: "1px solid var(--line)" },
    "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent-line)" },
    "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--breaks-soft)" },
    ".cm-tooltip, .cm-panels": { color: "var(--ink)", backgroundColor: "var(--surface)", border: "1px solid var(--line-strong)" },
    ".cm-tooltip": { borderRadius: "var(--radius)", boxShadow: "var(--shadow-pop)", maxWidth: "min(36rem, 90vw)" },
    ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--ink)", backgroundColor: "var(--accent-soft)", outline: "1px solid var(--accent)" },
    ".cm-completionDetail": { color: "var(--ink-3)", fontStyle: "normal" },
    "@media print": { ".cm-gutters": { display: "none" }, ".cm-scroller": { overflow: "visible" }, ".cm-line": { whiteSpace: "pre-wrap" } },
  });
  const COLOURS = HighlightStyle.define([
    { tag: [tags.propertyName, tags.keyword, tags.definitionKeyword], color: "var(--accent)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--ok)" },
    { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.typeName], color: "var(--prod)" },
    { tag: tags.comment, color: "var(--ink-3)", fontStyle: "italic" },
    { tag: tags.invalid, color: "var(--breaks)" },
  ]);
  const FRAME = new CSSStyleSheet();
  FRAME.replaceSync(`
    :host { display: block; height: var(--editor-height); min-height: 6rem; resize: vertical; overflow: hidden;
      border: 1px solid var(--control); border-radius: var(--radius); background: var(--surface); }
    :host([data-invalid]) { border-color: var(--breaks); }
    :host(:focus-within) { outline: 2px solid var(--focus); }
    @media print { :host { height: auto; resize: none; overflow: visible; } }
  `);
  const FROM_FIELD = Annotation.define();

  const language = (format) => (format === "PROTOBUF" ? StreamLanguage.define(protobuf) : json());
  const words = (ids) => (ids ?? "").split(" ").map((id) => document.getElementById(id)?.innerText.trim()).filter(Boolean).join(" ");

  const enhance = (box) => {
    const area = box.querySelector("textarea");
    const format = area.form.elements.schema_type;
    const label = area.labels[0];
    const host = document.createElement("div");
    host.dataset.typing = "";
    host.toggleAttribute("data-invalid", area.ariaInvalid === "true");
    host.style.setProperty("--editor-height", `${area.rows * 1.26 + 1}rem`);
    const root = host.attachShadow({ mode: "open" });
    const about = document.createElement("p");
    about.id = "about";
    about.hidden = true;
    about.textContent = `${words(area.getAttribute("aria-describedby"))} ${box.dataset.help}`.trim();
    root.append(about);

    // The textarea keeps the value: forms, drafts and other scripts read and write only it.
    const mirror = EditorView.updateListener.of((update) => {
      if (!update.docChanged || update.transactions.some((change) => change.annotation(FROM_FIELD))) return;
      area.value = update.state.doc.toString();
      area.dispatchEvent(new Event("input", { bubbles: true }));
    });
    const mode = new Compartment();
    const view = new EditorView({
      root,
      parent: root,
      doc: area.value,
      extensions: [
        lineNumbers(), history(), indentOnInput(), bracketMatching(), closeBrackets(), autocompletion(),
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
        EditorState.tabSize.of(2), THEME, syntaxHighlighting(COLOURS), mode.of(language(format.value)), mirror,
        EditorView.contentAttributes.of({
          "aria-label": label.textContent.trim(), "aria-describedby": "about", tabindex: "0", "aria-required": String(area.required),
          ...(area.ariaInvalid === "true" ? { "aria-invalid": "true" } : {}),
        }),
      ],
    });
    root.adoptedStyleSheets = [...root.adoptedStyleSheets, FRAME];

    const read = () => {
      const now = view.state.doc.toString();
      if (area.value === now) return;
      view.dispatch({ changes: { from: 0, to: now.length, insert: area.value }, annotations: FROM_FIELD.of(true) });
    };
    area.form.addEventListener("input", read);
    area.form.addEventListener("reset", () => setTimeout(read));
    format.addEventListener("change", () => view.dispatch({ effects: mode.reconfigure(language(format.value)) }));
    label.addEventListener("click", (event) => {
      event.preventDefault();
      view.focus();
    });
    area.addEventListener("invalid", () => setTimeout(() => view.focus()));
    area.classList.add("visually-hidden");
    area.tabIndex = -1;
    area.ariaHidden = "true";
    area.before(host);
    const help = document.createElement("p");
    help.className = "help no-print";
    help.textContent = box.dataset.help;
    host.after(help);
  };

  for (const box of document.querySelectorAll("[data-schema-editor]")) enhance(box);
})();
