import { useId } from "react";
import { classes } from "../lib/classes";

export const inputLook =
  "w-full rounded-md border border-line-strong bg-panel px-2 text-sm text-text placeholder:text-faint focus:border-accent focus:outline-none focus-visible:ring-2 focus-visible:ring-accent/40";

export function Field({ name, hint, error, children }: {
  name: string;
  hint?: React.ReactNode;
  error?: string;
  children: (id: string) => React.ReactNode;
}) {
  const id = useId();
  return (
    <div className="flex flex-col gap-1">
      <label htmlFor={id} className="text-xs font-medium text-dim">{name}</label>
      {children(id)}
      {error ? <div role="alert" className="text-xs whitespace-pre-wrap text-bad">{error}</div> : hint && <div className="text-xs text-faint">{hint}</div>}
    </div>
  );
}

type TextProps = {
  name: string;
  value: string;
  onChange: (value: string) => void;
  hint?: React.ReactNode;
  error?: string;
  placeholder?: string;
  list?: string[];
  type?: string;
  maxLength?: number;
  autoFocus?: boolean;
};

export function TextField({ name, value, onChange, hint, error, placeholder, list, type = "text", maxLength, autoFocus }: TextProps) {
  return (
    <Field name={name} hint={hint} error={error}>
      {(id) => (
        <>
          <input
            id={id}
            type={type}
            value={value}
            autoFocus={autoFocus}
            autoComplete="off"
            spellCheck={false}
            placeholder={placeholder}
            maxLength={maxLength}
            list={list ? `${id}-list` : undefined}
            onChange={(event) => onChange(event.target.value)}
            className={classes(inputLook, "h-8")}
          />
          {list && (
            <datalist id={`${id}-list`}>
              {list.map((each) => <option key={each} value={each} />)}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function AreaField({ name, value, onChange, hint, error, rows = 6, mono = true, placeholder }: TextProps & { rows?: number; mono?: boolean }) {
  return (
    <Field name={name} hint={hint} error={error}>
      {(id) => (
        <textarea
          id={id}
          value={value}
          rows={rows}
          spellCheck={!mono}
          placeholder={placeholder}
          onChange={(event) => onChange(event.target.value)}
          className={classes(inputLook, "py-1.5", mono && "font-mono text-xs")}
        />
      )}
    </Field>
  );
}

export function SelectField({ name, value, onChange, options, hint }: TextProps & { options: [string, string][] }) {
  return (
    <Field name={name} hint={hint}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onChange(event.target.value)} className={classes(inputLook, "h-8")}>
          {options.map(([option, text]) => <option key={option} value={option}>{text}</option>)}
        </select>
      )}
    </Field>
  );
}
