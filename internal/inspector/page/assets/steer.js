// Commands of a person to a run, each with a reason that is kept with it.

import { ofRun, post } from "./api.js";
import { bold, dialog, field, fill, h, labels, short, toast, told } from "./dom.js";
import { nameOf } from "./state.js";

const unseen = " The server always gives the same answer: it does not say what becomes of the run.";

const kinds = {
  pause: { title: "Pause the run", about: "Nothing new begins until the run is resumed. What is under way continues to its end.", act: "Pause" },
  resume: { title: "Resume the run", about: "The run continues.", act: "Resume" },
  restart: { title: "Resume the run", about: "The server continues the run. Tasks that completed are not run again.", act: "Resume", path: "resume", plain: true, done: (page) => page.app.reopen() },
  cancel: { title: "Cancel the run", about: "What is under way is stopped, and the run ends as cancelled.", act: "Cancel the run", danger: true },
  pauseUnseen: { title: "Pause a run that you may not see", about: "Nothing new begins until somebody resumes it." + unseen, act: "Pause", path: "pause", plain: true, said: "If the run still works, it pauses" },
  cancelUnseen: { title: "Cancel a run that you may not see", about: "What is under way is stopped." + unseen, act: "Cancel the run", danger: true, path: "cancel", plain: true, said: "If the run still works, it ends" },
  message: { title: "Message to an agent", about: "The agent reads it with its next prompt. It passes the gate as everything that the agent reads.", act: "Send", text: true, agent: true },
  interrupt: { title: "Interrupt the task", about: "The model call under way is stopped. Your message comes first in the next turn; no retry is used.", act: "Interrupt", text: true, task: true },
  cancelTask: { title: "Cancel the task", about: "The task ends as cancelled. What depends on it does not run.", act: "Cancel the task", danger: true, task: true, path: "cancel" },
  rerun: { title: "Run the task again", about: "The task is run again while the run works.", act: "Run again", task: true },
};

// steer asks for what a command needs and sends it.
export function steer(page, kind, task) {
  const k = kinds[kind], { state } = page;
  const reason = h("input", { id: "steer-reason", type: "text", autocomplete: "off" });
  const text = k.text && h("textarea", { id: "steer-text", rows: 4, required: true, maxlength: 65536 });
  const agents = [...new Set(state.order.map((t) => t.assignee).filter(Boolean))];
  const agent = k.agent && h("select", { id: "steer-agent" }, agents.map((a) => h("option", { value: a }, a)));
  if (agent && task) agent.value = task.assignee;
  const level = k.text && h("select", { id: "steer-level" }, labels.slice(0, 3).map((l) => h("option", { value: l }, l)));
  if (level) level.value = "internal";
  const status = h("div", { role: "alert" });
  const go = h("button", { type: "submit", class: k.danger ? "danger" : "primary" }, k.act);
  const form = h("form", { class: "form pad" }, h("p", null, k.about), k.task && h("p", null, "Task: ", bold(nameOf(task))), page.name && h("p", null, "Run: ", bold(page.name)),
    agent && field("steer-agent", "Agent", agent), text && [field("steer-text", "Text", text), field("steer-level", "Label of the text", level)], !k.plain && field("steer-reason", "Why? (kept with the command)", reason), status, h("footer", null, go));
  const d = dialog(k.title, form);
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    go.disabled = true;
    try {
      const done = await post(...request(page, kind, k, task, { agent: agent?.value, text: text?.value, classification: level?.value, reason: reason.value }));
      d.close();
      toast(k.said ?? `The run has taken: ${done.command ?? k.act}`);
      k.done?.(page);
    } catch (err) {
      go.disabled = false;
      fill(status, told(err));
    }
  });
}

// stopUnseen asks, and pauses or cancels a run that the viewer may not see.
export function stopUnseen(run, kind) {
  steer({ id: run.runId, name: `${short(run.runId)} of ${run.spec}, started by ${run.starter || "an unknown person"}`, state: { order: [] } }, kind + "Unseen");
}

function request(page, kind, k, task, body) {
  for (const key in body) if (body[key] === undefined) delete body[key];
  if (k.task) return [ofRun(page, "nodes", task.id, k.path ?? kind), body];
  return [ofRun(page, kind === "message" ? "messages" : k.path ?? kind), body];
}
