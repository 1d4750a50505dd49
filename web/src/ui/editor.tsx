import { acceptCompletion, autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { SQLite, sql } from "@codemirror/lang-sql";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers, placeholder as placeholderText } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "react";

import type { Problem } from "../lib/problems";

type Props = {
  label: string;
  language: "yaml" | "json" | "sql";
  value: string;
  onChange: (value: string) => void;
  problems?: Problem[];
  /** Tables with their columns, for completion in SQL. */
  tables?: Record<string, string[]>;
  onRun?: () => void;
  placeholder?: string;
};

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent-text)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--info)" },
  { tag: tags.comment, color: "var(--faint)", fontStyle: "italic" },
]);

const LOOK = EditorView.theme({
  "&": { height: "100%", fontSize: "12.5px", color: "var(--text)", backgroundColor: "var(--bg)" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--font-mono)", caretColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--faint)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-selectionBackground, &.cm-focused .cm-selectionBackground": { backgroundColor: "var(--selected) !important" },
  ".cm-tooltip": { backgroundColor: "var(--raised)", border: "1px solid var(--line)", color: "var(--text)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--selected)", color: "var(--text)" },
});

/** CodeMirror, loaded only by pages that edit. */
export default function Editor(props: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView>(undefined);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const { language, value, label, placeholder, tables } = latest.current;
    const grammar = language === "yaml" ? yaml() : language === "json" ? json() : sql({ dialect: SQLite, schema: tables, upperCaseKeywords: true });
    const run = () => {
      latest.current.onRun?.();
      return latest.current.onRun !== undefined;
    };
    view.current = new EditorView({
      parent: host.current ?? undefined,
      state: EditorState.create({
        doc: value,
        extensions: [
          lineNumbers(), history(), drawSelection(), indentOnInput(), bracketMatching(), highlightActiveLine(), autocompletion(), lintGutter(),
          keymap.of([{ key: "Mod-Enter", run }, { key: "Tab", run: acceptCompletion }, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
          grammar, syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": label }),
          ...(placeholder ? [placeholderText(placeholder)] : []),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) latest.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    return () => view.current?.destroy();
  }, [props.language, props.tables]);

  useEffect(() => {
    const current = view.current;
    if (current && current.state.doc.toString() !== props.value) {
      current.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: props.value } });
    }
  }, [props.value]);

  useEffect(() => {
    const current = view.current;
    if (!current) return;
    const found: Diagnostic[] = (props.problems ?? []).map((problem) => {
      const line = current.state.doc.line(Math.min(Math.max(problem.line, 1), current.state.doc.lines));
      const from = Math.min(line.from + Math.max(problem.column - 1, 0), line.to);
      return { from, to: Math.max(line.to, from), severity: problem.isWarning ? "warning" : "error", message: problem.text };
    });
    current.dispatch(setDiagnostics(current.state, found));
  }, [props.problems]);

  return <div ref={host} className="h-full min-h-40 overflow-hidden rounded-md border border-line-strong focus-within:border-accent" />;
}

