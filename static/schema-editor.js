/* A schema's textarea becomes a code editor; without this script it stays a textarea, which is what forms send. */
(() => {
  "use strict";

  const {
    Annotation, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, Compartment, completionKeymap, defaultKeymap, EditorState,
    EditorView, HighlightStyle, history, historyKeymap, indentOnInput, json, keymap, lineNumbers,
    lintGutter, nextDiagnostic, protobuf, setDiagnostics, StreamLanguage, syntaxHighlighting, tags,
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
    // a border, because browsers copy a text decoration into a style attribute when one types over it
    ".cm-lintRange": { backgroundImage: "none !important", paddingBottom: "0" },
    ".cm-lintRange-info": { borderBottom: "1px dotted var(--info)" },
    ".cm-lintRange-warning": { borderBottom: "2px dotted var(--care)" },
    ".cm-lintRange-error": { borderBottom: "2px solid var(--breaks)" },
    ".cm-diagnostic": { padding: "0.375rem 0.625rem", whiteSpace: "pre-wrap", fontFamily: "var(--font-sans)" },
    ".cm-diagnostic-error": { borderLeftColor: "var(--breaks)" },
    ".cm-diagnostic-warning": { borderLeftColor: "var(--care)" },
    ".cm-diagnostic-info": { borderLeftColor: "var(--info)" },
    ".cm-diagnosticAction": { display: "block", width: "100%", margin: "0.25rem 0 0", padding: "0.25rem 0.5rem", textAlign: "start", font: "inherit",
      color: "var(--ink)", backgroundColor: "var(--accent-soft)", border: "1px solid var(--accent-line)", borderRadius: "var(--radius)", cursor: "pointer" },
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
  const FRAME = new CSSStyleSheet(); // the page's own reset of borders would win without !important
  FRAME.replaceSync(`
    :host { display: block; height: var(--editor-height); min-height: 6rem; resize: vertical; overflow: hidden;
      border: 1px solid var(--control) !important; border-radius: var(--radius); background: var(--surface); }
    :host([data-invalid]) { border-color: var(--breaks) !important; }
    :host(:focus-within) { outline: 2px solid var(--focus); }
    @media print { :host { height: auto; resize: none; overflow: visible; } }
  `);
  const PAUSE = 400;
  const AGAIN = 15000;
  const SHOWN = 20;
  const CHECKED = /^(registry|subject|schema_type|level|profile|ref_\w+|csrfmiddlewaretoken)$/;
  const FROM_FIELD = Annotation.define();

  const words_of = (text) => text.split(" ");
  const KNOWN = {
    AVRO: {
      types: words_of("null boolean int long float double bytes string record enum array map fixed"),
      logicalType: words_of("date time-millis time-micros timestamp-millis timestamp-micros timestamp-nanos local-timestamp-millis local-timestamp-micros local-timestamp-nanos decimal uuid duration"),
      keys: words_of("type name namespace doc aliases fields default order symbols items values size logicalType precision scale"),
    },
    JSON: {
      types: words_of("null boolean integer number string array object"),
      format: words_of("date-time date time duration email hostname ipv4 ipv6 uri uuid regex"),
      keys: words_of("$schema $id $ref $defs title description type properties required additionalProperties patternProperties items prefixItems enum const default examples format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems minProperties maxProperties allOf anyOf oneOf not if then else deprecated"),
    },
    PROTOBUF: {
      types: words_of("double float int32 int64 uint32 uint64 sint32 sint64 fixed32 fixed64 sfixed32 sfixed64 bool string bytes"),
      keys: words_of("syntax package import option message enum oneof map repeated optional reserved service rpc returns extend extensions"),
    },
  };
  const DEFINED = {
    AVRO: (text) => [...text.matchAll(/"name"\s*:\s*"([\w.]+)"/g)].map(([, name]) => name),
    JSON: (text) => definitions(text),
    PROTOBUF: (text) => [...text.matchAll(/\b(?:message|enum)\s+(\w+)/g)].map(([, name]) => name),
  };
  // The pointers to what a JSON Schema defines for itself. The text may be unfinished, so it is read token by token.
  const definitions = (text) => {
    const names = [];
    let [depth, key, within] = [0, "", ""];
    for (const [token, name, colon] of text.matchAll(/"((?:[^"\\]|\\.)*)"(?:\s*(:))?|[{}[\]]/g)) {
      if (token === "{" || token === "[") {
        depth += 1;
        if (depth === 2) within = token === "{" && /^(\$defs|definitions)$/.test(key) ? key : "";
      } else if (token === "}" || token === "]") depth -= 1;
      else if (colon && depth === 1) key = name;
      else if (colon && depth === 2 && within) names.push(`#/${within}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);
    }
    return names;
  };
  const SEARCHED = 200_000;

  // What can stand at the cursor: by the key before it in JSON, and anywhere in Protobuf.
  const completions = (form) => (context) => {
    const format = form.elements.schema_type.value;
    const known = KNOWN[format];
    const typed = context.matchBefore(format === "PROTOBUF" ? /\w+/ : /"[\w.$#/-]*/);
    if (!known || !typed) return null;
    const before = context.state.sliceDoc(Math.max(0, typed.from - 200), typed.from);
    const [, key] = /"([\w$]+)"\s*:\s*(?:\[[^\]{}]*)?$/.exec(before) ?? [];
    const text = context.state.sliceDoc(0, SEARCHED);
    const references = [...form.querySelectorAll("[name=ref_name]")].map((field) => field.value.trim()).filter(Boolean);
    const names = [...new Set(DEFINED[format](text))];
    const named = [...names.map((label) => ({ label, type: "class" })), ...references.map((label) => ({ label, type: "namespace" }))];
    const plain = (labels, type) => labels.map((label) => ({ label, type }));
    const types = plain(known.types, "type");
    let options = plain(known.keys, "property");
    if (format === "PROTOBUF") options = [...types, ...named, ...plain(known.keys, "keyword")];
    else if (key === "$ref") options = named;
    else if (key && known[key] && key !== "types" && key !== "keys") options = plain(known[key], "constant");
    else if (key && /^(type|items|values)$/.test(key)) options = format === "AVRO" ? [...types, ...named] : types;
    else if (key) return null;
    return { from: typed.from + (format === "PROTOBUF" ? 0 : 1), options, validFor: /^[\w.$#/-]*$/ };
  };

  const language = (format) => (format === "PROTOBUF" ? StreamLanguage.define(protobuf) : json());
  const words = (ids) => (ids ?? "").split(" ").map((id) => document.getElementById(id)?.innerText.trim()).filter(Boolean).join(" ");

  // The problems of the text come from the server after a pause, one request at a time. Where there is no answer, the
  // verdict is unknown: nothing of an earlier text stays.
  const watch = (box, area, view) => {
    const { strip, state, list, levels } = Object.fromEntries(
      [...box.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]),
    );
    const result = document.querySelector("[data-result]"); // the page's own report, of the text as it was sent
    let timer = 0;
    let changes = 0;
    let running = false;

    const later = (pause) => {
      clearTimeout(timer);
      timer = setTimeout(check, pause);
    };
    const place = ({ line, column }) => {
      const row = view.state.doc.line(Math.min(line, view.state.doc.lines));
      return Math.min(row.from + column - 1, row.to);
    };
    const show = (told) => {
      const checked = view.state.doc;
      const action = ({ title, effect, change }) => ({
        name: `${title[0].toUpperCase()}${title.slice(1)}. ${effect}`,
        apply: () => {
          if (view.state.doc === checked) view.dispatch({ changes: change, userEvent: "input.repair" });
          view.focus();
        },
      });
      const button = (words, press) => {
        const made = document.createElement("button");
        Object.assign(made, { type: "button", className: "button button-small editor-repair", textContent: words });
        made.addEventListener("click", press);
        return made;
      };
      const go = (from) => {
        view.dispatch({ selection: { anchor: place(from) }, scrollIntoView: true });
        view.focus();
      };
      // The same repairs as in the tooltips, for those who use a keyboard or a screen reader.
      const item = ({ from, severity, sentence, repairs }) => {
        const row = document.createElement("li");
        row.dataset.severity = severity;
        row.append(
          button(box.dataset.line.replace("%", from.line), () => go(from)), ` ${sentence}`,
          ...repairs.map(action).map(({ name, apply }) => button(name, apply)),
        );
        return row;
      };
      const diagnostics = told.problems.map(({ from, to, severity, sentence, repairs }) => ({
        from: place(from), to: place(to), severity, message: sentence, actions: repairs.map(action),
      }));
      view.dispatch(setDiagnostics(view.state, diagnostics.sort((one, other) => one.from - other.from)));
      strip.hidden = false;
      list.replaceChildren(...told.problems.slice(0, SHOWN).map(item));
      if (state.textContent !== told.summary) state.textContent = told.summary;
      strip.dataset.verdict = told.checked ? told.verdict : "unknown";
      levels.hidden = result?.dataset.result === "current"; // the report has them
      // as the server rendered it, every name escaped
      levels.replaceChildren(...new DOMParser().parseFromString(told.levels ?? "", "text/html").body.childNodes);
    };
    const unknown = (words) => show({ checked: false, summary: words, problems: [] });

    const check = async () => {
      if (running || !area.value.trim()) return;
      running = true;
      const sent = changes;
      const began = performance.now();
      const body = new FormData();
      for (const [name, value] of new FormData(area.form)) if (CHECKED.test(name)) body.append(name, value);
      for (const name of ["registry", "subject"]) if (box.dataset[name]) body.set(name, box.dataset[name]);
      body.set("text", area.value);
      let told = null;
      try {
        if (body.get("registry") && body.get("subject").trim()) {
          const answer = await fetch(box.dataset.url, { method: "POST", body, redirect: "manual" });
          const isJson = answer.headers.get("Content-Type")?.startsWith("application/json");
          told = isJson ? await answer.json() : { checked: false, summary: box.dataset.refused, problems: [] };
          if (answer.status === 429) later(AGAIN);
        }
      } catch {
        told = { checked: false, summary: box.dataset.away, problems: [] };
        later(AGAIN);
      }
      running = false;
      if (sent !== changes) later(Math.max(PAUSE, performance.now() - began));
      else if (told) show(told);
    };

    area.form.addEventListener("input", (event) => {
      if (event.target !== area && event.target !== area.form && !CHECKED.test(event.target.name)) return;
      changes += 1;
      if (result) {
        result.dataset.result = "earlier";
        result.querySelector("[data-earlier]").hidden = false;
      }
      if (!strip.hidden) unknown(box.dataset.waiting);
      later(PAUSE);
    });
    later(PAUSE);
  };

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
        lineNumbers(), history(), indentOnInput(), bracketMatching(), closeBrackets(), autocompletion({ override: [completions(area.form)], icons: false }),
        lintGutter(), keymap.of([{ key: "F8", run: nextDiagnostic }, ...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...defaultKeymap]),
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
    if (box.dataset.url) watch(box, area, view);
  };

  for (const box of document.querySelectorAll("[data-schema-editor]")) enhance(box);
})();
