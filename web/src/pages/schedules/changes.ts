import { api, data } from "../../api/client";
import { cli, curl } from "../../lib/command";
import { useChange } from "../../shell/change";

/** What can be done with a schedule, on its page and in the list. */
export function useScheduleChanges(id: string, onDeleted: () => void) {
  const change = useChange();
  const params = { path: { id } };
  const path = `/v1/recurring/${id}`;
  const noted = (note: string | undefined) => (note ? ["--note", note] : []);
  return {
    pause: () => change({
      title: "Pause this schedule", verb: "Pause it", takesReason: true, description: "It does not fire until it is resumed. What runs goes on.",
      run: (note) => data(api.POST("/v1/recurring/{id}/pause", { params, body: { note } })), done: "Schedule paused",
      cli: (note) => cli("recurring", "pause", id, ...noted(note)), curl: (note) => curl("POST", `${path}/pause`, { note }),
    }),
    resume: () => change({
      title: "Resume this schedule", verb: "Resume it", description: "It fires from the next occurrence after now.",
      run: () => data(api.POST("/v1/recurring/{id}/resume", { params })), done: "Schedule resumed",
      cli: () => cli("recurring", "resume", id), curl: () => curl("POST", `${path}/resume`),
    }),
    runNow: () => change({
      title: "Run it now", verb: "Run it", description: "Out of schedule, whether or not it is paused.",
      run: () => data(api.POST("/v1/recurring/{id}/run", { params, body: {} })), done: "Run started",
      cli: () => cli("recurring", "run", id), curl: () => curl("POST", `${path}/run`, {}),
    }),
    remove: () => change({
      title: "Delete this schedule", verb: "Delete it", isDangerous: true, description: "What runs of it goes on. This cannot be undone.",
      run: async () => {
        await data(api.DELETE("/v1/recurring/{id}", { params }));
        onDeleted();
      },
      done: "Schedule deleted", cli: () => cli("recurring", "delete", id), curl: () => curl("DELETE", path),
    }),
  };
}
