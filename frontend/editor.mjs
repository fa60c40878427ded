// What static/schema-editor.js uses of CodeMirror: the global `CodeMirror` has these names and no others.
export { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { json } from "@codemirror/lang-json";
export { bracketMatching, HighlightStyle, indentOnInput, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
export { protobuf } from "@codemirror/legacy-modes/mode/protobuf";
export { lintGutter, nextDiagnostic, setDiagnostics } from "@codemirror/lint";
export { Annotation, Compartment, EditorState } from "@codemirror/state";
export { EditorView, keymap, lineNumbers } from "@codemirror/view";
export { tags } from "@lezer/highlight";
