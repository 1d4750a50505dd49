import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useMemo, useState } from "react";
import { api, data } from "../../api/client";
import type { Fields, Recurring } from "../../api/recurring";
import { curl } from "../../lib/command";
import { parseJson } from "../../lib/input";
import { localZone } from "../../lib/time";
import { toast } from "../../shell/toasts";
import { Button } from "../../ui/button";
import { Copy } from "../../ui/copy";
import { Dialog } from "../../ui/dialog";
import { AreaField, SelectField, TextField } from "../../ui/field";
import { messageOf } from "../../ui/states";
import { NextTimes } from "./next-times";

type Form = {
  name: string; rhythm: "cron_expr" | "every"; expression: string; timezone: string; what: "function" | "orchestration"; target: string; input: string;
  description: string; overlap: string; missed: string; jitter: string; exclude: string; endsAt: string; gap: string; overlapHour: string;
};

const ZONES = Intl.supportedValuesOf("timeZone");

function formOf(row: Recurring | undefined): Form {
  const payload = row?.action_template.payload;
  return {
    name: row?.name ?? "", rhythm: row?.every ? "every" : "cron_expr", expression: row?.every ?? row?.cron_expr ?? "0 9 * * MON-FRI",
    timezone: row?.timezone ?? localZone, what: row?.action_template.orchestration ? "orchestration" : "function",
    target: row?.action_template.orchestration ?? row?.action_template.provider ?? "", input: payload === undefined ? "null" : JSON.stringify(payload, null, 2),
    description: row?.description ?? "", overlap: row?.overlap_policy ?? "allow", missed: row?.missed ?? "none", jitter: row?.jitter ?? "",
    exclude: (row?.exclude ?? []).join("\n"), endsAt: row?.ends_at ?? "", gap: row?.daylight.gap ?? "shift", overlapHour: row?.daylight.overlap ?? "first",
  };
}

function fieldsOf(form: Form, isNew: boolean): Fields {
  const empty = isNew ? undefined : null;
  const exclude = form.exclude.split("\n").map((line) => line.trim()).filter(Boolean);
  return {
    name: form.name || empty,
    [form.rhythm]: form.expression,
    timezone: form.timezone,
    [form.what]: form.target,
    input: parseJson(form.input).value ?? null,
    description: form.description || empty,
    overlap_policy: form.overlap as Fields["overlap_policy"],
    missed: form.missed as Fields["missed"],
    jitter: form.jitter || empty,
    exclude: exclude.length > 0 ? exclude : empty,
    ends_at: form.endsAt || empty,
    daylight: { gap: form.gap as "shift" | "skip", overlap: form.overlapHour as "first" | "last" | "both" },
  };
}

/** Creates or changes a schedule; the next times follow what is typed. */
export function ScheduleDialog({ schedule, onClose }: { schedule?: Recurring; onClose: () => void }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [form, setForm] = useState(() => formOf(schedule));
  const [error, setError] = useState<unknown>();
  const set = (field: keyof Form) => (value: string) => setForm((before) => ({ ...before, [field]: value }));
  const functions = useQuery({ queryKey: ["functions", "names"], queryFn: () => data(api.GET("/v1/functions")) });
  const fields = useMemo(() => fieldsOf(form, schedule === undefined), [form, schedule]);
  const preview = usePreview(form);
  const problem = parseJson(form.input).problem;
  const path = schedule ? `/v1/recurring/${schedule.id}` : "/v1/recurring";

  const submit = async () => {
    try {
      if (schedule) {
        await data(api.PUT("/v1/recurring/{id}", { params: { path: { id: schedule.id } }, body: fields }));
        toast("Schedule changed");
      } else {
        const created = await data(api.POST("/v1/recurring", { body: fields }));
        toast("Schedule created");
        void navigate({ to: "/schedules/$id", params: { id: created.recurring_id }, search: {} });
      }
      onClose();
      void client.invalidateQueries({ queryKey: ["recurring"] });
    } catch (failure) {
      setError(failure);
    }
  };

  return (
    <Dialog
      open
      wide
      onClose={onClose}
      title={schedule ? "Change the schedule" : "New schedule"}
      footer={
        <>
          <div className="mr-auto flex"><Copy text={curl(schedule ? "PUT" : "POST", path, fields)}>Copy as curl</Copy></div>
          <Button look="ghost" onClick={onClose}>Cancel</Button>
          <Button look="primary" disabled={problem !== undefined || form.target === ""} onClick={() => void submit()}>{schedule ? "Save" : "Create"}</Button>
        </>
      }
    >
      <div className="grid gap-5 md:grid-cols-[minmax(0,1fr)_260px]">
        <form className="flex flex-col gap-3" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
          <div className="grid grid-cols-2 gap-3">
            <TextField name="Name" value={form.name} onChange={set("name")} autoFocus />
            <TextField name="Time zone" value={form.timezone} onChange={set("timezone")} list={ZONES} />
            <SelectField name="Rhythm" value={form.rhythm} onChange={set("rhythm")} options={[["cron_expr", "Cron expression"], ["every", "Interval"]]} />
            <TextField name={form.rhythm === "every" ? "Every" : "Expression"} value={form.expression} onChange={set("expression")} placeholder={form.rhythm === "every" ? "15m" : "0 9 * * MON-FRI"} />
            <SelectField name="What" value={form.what} onChange={set("what")} options={[["function", "Call a function"], ["orchestration", "Start an orchestration"]]} />
            <TextField name={form.what === "function" ? "Function" : "Orchestration"} value={form.target} onChange={set("target")} list={functions.data?.functions.map((each) => each.name)} />
          </div>
          <AreaField name="Input, JSON" value={form.input} onChange={set("input")} rows={3} error={problem} />
          <TextField name="Description" value={form.description} onChange={set("description")} />
          <details>
            <summary className="cursor-pointer text-dim">More: overlap, missed times, exclusions, daylight saving</summary>
            <div className="mt-3 grid grid-cols-2 gap-3">
              <SelectField name="If the last run still runs" value={form.overlap} onChange={set("overlap")} options={[["allow", "Run beside it"], ["skip", "Skip"], ["buffer_one", "Run after it, once"], ["cancel_other", "Cancel it"]]} />
              <SelectField name="Times missed while the server was away" value={form.missed} onChange={set("missed")} options={[["none", "Skip them"], ["latest", "Run the latest"], ["all", "Run them all"]]} />
              <SelectField name="Times that the clock skips" value={form.gap} onChange={set("gap")} options={[["shift", "Run when it is put forward"], ["skip", "Skip"]]} />
              <SelectField name="Times that the clock repeats" value={form.overlapHour} onChange={set("overlapHour")} options={[["first", "The first"], ["last", "The last"], ["both", "Both"]]} />
              <TextField name="Spread by up to" value={form.jitter} onChange={set("jitter")} placeholder="30s" />
              <TextField name="Ends at" value={form.endsAt} onChange={set("endsAt")} placeholder="2027-01-01T00:00:00Z" />
              <AreaField name="Excluded days, one a line" value={form.exclude} onChange={set("exclude")} rows={3} placeholder="2026-12-25" />
            </div>
          </details>
          {error !== undefined && <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(error)}</p>}
          <button type="submit" hidden />
        </form>
        <section aria-label="Preview" className="min-w-0">
          <h3 className="mb-2 text-xs font-medium text-faint">Next 10 times</h3>
          {preview.error ? <p role="alert" className="whitespace-pre-wrap text-bad">{messageOf(preview.error)}</p> : preview.data && <NextTimes preview={preview.data} />}
        </section>
      </div>
    </Dialog>
  );
}

function usePreview(form: Form) {
  const { rhythm, expression, timezone, exclude, endsAt, gap, overlapHour } = useDeferredValue(form);
  const lines = exclude.split("\n").map((line) => line.trim()).filter(Boolean);
  const body: Fields = {
    [rhythm]: expression, timezone,
    ...(lines.length > 0 ? { exclude: lines } : {}),
    ...(endsAt ? { ends_at: endsAt } : {}),
    daylight: { gap: gap as "shift" | "skip", overlap: overlapHour as "first" | "last" | "both" },
  };
  return useQuery({
    queryKey: ["recurring", "preview", body],
    queryFn: () => data(api.POST("/v1/recurring/preview", { params: { query: { count: 10 } }, body })),
    placeholderData: (previous) => previous,
    retry: false,
  });
}
