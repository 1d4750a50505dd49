import { AreaField, SelectField, TextField } from "./field";
import { parseJson } from "../lib/input";

/** The part of JSON Schema that a form can ask for; all else is asked for as JSON. */
export type JsonSchema = {
  type?: string | string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  default?: unknown;
  examples?: unknown[];
};

export function hasForm(schema: JsonSchema | undefined): schema is JsonSchema & { properties: Record<string, JsonSchema> } {
  return schema?.properties !== undefined && Object.keys(schema.properties).length > 0;
}

export function exampleOf(schema: JsonSchema | undefined): unknown {
  return schema?.examples?.[0] ?? schema?.default;
}

type Props = { schema: JsonSchema & { properties: Record<string, JsonSchema> }; value: Record<string, unknown>; onChange: (value: Record<string, unknown>) => void };

export function SchemaForm({ schema, value, onChange }: Props) {
  const set = (name: string, next: unknown) => {
    const { [name]: _, ...rest } = value;
    onChange(next === undefined ? rest : { ...rest, [name]: next });
  };
  return (
    <div className="flex flex-col gap-3">
      {Object.entries(schema.properties).map(([name, property]) => (
        <Property key={name} name={name} schema={property} isRequired={schema.required?.includes(name) ?? false} value={value[name]} onChange={(next) => set(name, next)} />
      ))}
    </div>
  );
}

function Property({ name, schema, isRequired, value, onChange }: { name: string; schema: JsonSchema; isRequired: boolean; value: unknown; onChange: (value: unknown) => void }) {
  const title = `${schema.title ?? name}${isRequired ? "" : " (optional)"}`;
  const type = Array.isArray(schema.type) ? schema.type.find((each) => each !== "null") : schema.type;
  if (schema.enum) {
    const options: [string, string][] = [["", "–"], ...schema.enum.map((each): [string, string] => [JSON.stringify(each), String(each)])];
    return <SelectField name={title} hint={schema.description} value={value === undefined ? "" : JSON.stringify(value)} options={options} onChange={(text) => onChange(text === "" ? undefined : JSON.parse(text))} />;
  }
  if (type === "boolean") {
    return <SelectField name={title} hint={schema.description} value={value === undefined ? "" : String(value)} options={[["", "–"], ["true", "yes"], ["false", "no"]]} onChange={(text) => onChange(text === "" ? undefined : text === "true")} />;
  }
  if (type === "integer" || type === "number") {
    return <TextField name={title} type="number" hint={schema.description} value={value === undefined ? "" : String(value)} onChange={(text) => onChange(text === "" ? undefined : Number(text))} />;
  }
  if (type === "string") {
    return <TextField name={title} hint={schema.description} value={typeof value === "string" ? value : ""} onChange={(text) => onChange(text === "" && !isRequired ? undefined : text)} />;
  }
  return <JsonProperty title={title} hint={schema.description} value={value} onChange={onChange} />;
}

function JsonProperty({ title, hint, value, onChange }: { title: string; hint?: string; value: unknown; onChange: (value: unknown) => void }) {
  const text = value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2);
  const parsed = parseJson(text);
  return <AreaField name={`${title}, JSON`} hint={hint} rows={3} value={text} error={parsed.problem} onChange={(next) => {
    const result = parseJson(next);
    onChange(result.problem === undefined ? result.value : next);
  }} />;
}
