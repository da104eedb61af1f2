"use strict";
// The page: keeps the rows that the server tells, and shows them. Texts from programs are only ever text.

const SECTIONS = ["workers", "jobs", "plans", "tasks", "arrays", "functions", "losses", "logs"];
const WINDOW_US = 30e6, SHOWN_JOBS = 12, SHOWN_WORKERS = 100, SHOWN_ARRAYS = 100, SHOWN_LINES = 100;
const rows = Object.fromEntries(SECTIONS.map((name) => [name, new Map()]));
const changed = new Set(SECTIONS);
const byId = (id) => document.getElementById(id);
const { bytes, seconds } = Charts;

const flames = new Flames(byId("functions"), byId("under-functions"));

let version = 0, clock = null, picked = null, drawn = null, before = null;
const timeline = new Charts.Timeline(byId("timeline"), byId("under"));
const memoryChart = Charts.line(byId("memory-chart"), 600), bytesChart = Charts.line(byId("bytes-chart"), 600);

function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function take(news) {
  if (news.all) for (const name of SECTIONS) { rows[name].clear(); changed.add(name); }
  for (const [name, found] of Object.entries(news.rows)) {
    for (const [key, row] of Object.entries(found)) rows[name].set(key, row);
    changed.add(name);
  }
  for (const [name, keys] of Object.entries(news.gone)) {
    for (const key of keys) rows[name].delete(`${key}`);
    changed.add(name);
  }
  version = news.version;
  clock = { us: news.now, at: performance.now() };
  byId("title").textContent = news.title;
  document.title = `${news.title} · spartan_ng`;
}

const now = () => clock.us + (performance.now() - clock.at) * 1000;
const workers = () => [...rows.workers.values()].sort((a, b) => a.rank - b.rank);
const total = (name) => [...rows.workers.values()].reduce((sum, row) => sum + row[name], 0);

function showSummary() {
  const running = [...rows.jobs.values()].filter((job) => job.end === null).length;
  const facts = [
    ["workers", rows.workers.size], ["threads", total("threads")], ["memory", bytes(total("used"))],
    ["received", bytes(total("received"))], ["running", running], ["losses", rows.losses.size],
  ];
  byId("summary").replaceChildren(...facts.map(([name, value]) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
}

function meter(share, text, kind) {
  const box = make("div", undefined, `meter ${kind || ""}`), fill = make("i");
  fill.style.width = `${Math.min(100, 100 * share)}%`;
  box.append(fill, make("b", text));
  return box;
}

function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Lines stay where they are, and change where what they say does: to make a hundred anew takes a frame.
function showWorkers() {
  const every = workers(), shown = every.slice(0, SHOWN_WORKERS), body = byId("workers").tBodies[0];
  const most = Math.max(1, ...every.map((row) => row.used));
  while (body.rows.length > shown.length) body.lastChild.remove();
  while (body.rows.length < shown.length) {
    const line = body.insertRow();
    for (let k = 0; k < 9; k += 1) line.insertCell();
    line.cells[3].append(meter(0, ""));
  }
  shown.forEach((row, k) => {
    const { cells } = body.rows[k], [fill, text] = cells[3].firstChild.children;
    fill.style.width = `${Math.min(100, 100 * row.used / (row.memory || most))}%`;
    write(text, row.memory ? `${bytes(row.used)} of ${bytes(row.memory)}` : bytes(row.used));
    const texts = [row.rank, row.label, row.threads, null, bytes(row.free), bytes(row.received), bytes(row.sent), bytes(row.spilled), row.doing];
    texts.forEach((said, n) => { if (said !== null) write(cells[n], `${said}`); });
  });
  const left = every.length - SHOWN_WORKERS;
  byId("more-workers").textContent = left > 0 ? `and ${left} more` : "";
}

function stageRow(number, plan, found, job) {
  const [done, took, moved] = found || [0, 0, 0];
  const isDone = done >= job.ranks;
  const line = make("div", undefined, "stage"), costs = make("div", undefined, "costs");
  if (job.end === null && !isDone && (done || number === current(job))) line.classList.add("running");
  const name = make("div", plan ? plan.name : `stage ${number}`, "line");
  name.title = name.textContent;
  const expected = plan ? `predicted ${seconds(plan.seconds)}, ${bytes(plan.bytes)}` : "";
  costs.append(make("span", found ? `${seconds(took)}, ` : ""), make("span", found ? bytes(moved) : "", moved ? "moved" : ""),
    make("span", found && expected ? ` · ${expected}` : expected));
  line.append(name, meter(done / job.ranks, `${done} of ${job.ranks} workers`, isDone ? "done" : ""), costs);
  return line;
}

function current(job) {
  let least = 0;
  while (job.stages[least] && job.stages[least][0] >= job.ranks) least += 1;
  return least;
}

const opened = new Map();

function jobRow(key, job, isFirst) {
  const details = make("details", undefined, "job"), head = make("summary");
  details.open = opened.has(key) ? opened.get(key) : isFirst;
  head.addEventListener("click", () => opened.set(key, !details.open));
  const took = ((job.end === null ? now() : job.end) - job.begin) / 1e6;
  head.append(make("span", job.state, `badge ${job.state}`), make("span", job.line || key, "line"), make("span", seconds(Math.max(0, took))),
    make("small", `${job.client}, ${job.ranks} ${job.ranks === 1 ? "worker" : "workers"}`));
  details.append(head);
  if (job.error) details.append(make("pre", job.error, "error"));
  if (!details.open) return details;
  const plan = rows.plans.get(job.plan);
  const count = plan ? plan.stages.length : Math.max(0, ...Object.keys(job.stages).map((k) => Number(k) + 1));
  for (let k = 0; k < count; k += 1) details.append(stageRow(k, plan && plan.stages[k], job.stages[k], job));
  if (plan) {
    const button = make("button", "show the plan");
    button.addEventListener("click", () => { picked = key; showPlan(); });
    details.append(button);
  }
  return details;
}

function showJobs() {
  const every = [...rows.jobs.entries()].sort(([, a], [, b]) => b.begin - a.begin).slice(0, SHOWN_JOBS);
  const place = byId("jobs");
  place.classList.toggle("empty", !every.length);
  if (every.length) place.replaceChildren(...every.map(([key, job], k) => jobRow(key, job, k === 0)));
}

async function showPlan() {
  const job = rows.jobs.get(picked);
  if (!job) return;
  byId("plan-section").hidden = false;
  byId("plan-line").textContent = job.line;
  if (drawn !== job.plan) {
    drawn = job.plan;
    const answer = await fetch(`/plan?key=${encodeURIComponent(job.plan)}`);
    if (!answer.ok) return;
    const picture = new DOMParser().parseFromString(await answer.text(), "image/svg+xml").documentElement;
    byId("plan").replaceChildren(document.importNode(picture, true));
  }
  for (const group of byId("plan").querySelectorAll("g[data-stage]")) {
    const [done] = job.stages[group.dataset.stage] || [0];
    group.classList.toggle("done", done >= job.ranks);
    group.classList.toggle("running", job.end === null && done < job.ranks && (done > 0 || Number(group.dataset.stage) === current(job)));
  }
}

function showArrays() {
  const every = [...rows.arrays.values()].filter((row) => row.shape.length).sort((a, b) => b.nbytes - a.nbytes);
  byId("arrays").tBodies[0].replaceChildren(...every.slice(0, SHOWN_ARRAYS).map((row) => {
    const line = make("tr");
    line.append(make("td", row.line || "the program", "line"), make("td", `(${row.shape.join(", ")}${row.shape.length === 1 ? "," : ""})`), make("td", row.dtype),
      make("td", row.tiling), make("td", bytes(row.nbytes)));
    return line;
  }));
  const left = every.length - SHOWN_ARRAYS;
  byId("more-arrays").textContent = every.length ? (left > 0 ? `and ${left} smaller ones` : "") : "None that is known.";
}

function showFunctions() {
  byId("functions-section").hidden = !rows.functions.size;
  flames.show([...rows.functions].map(([stack, row]) => [stack, row.seconds]));
}

function showLines(name, text) {
  const every = [...rows[name].values()].slice(-SHOWN_LINES).reverse();
  if (!every.length) return;
  const place = byId(name);
  place.classList.remove("empty");
  place.replaceChildren(...every.map((row) => {
    const line = make("li", undefined, row.level || ""), at = make("time", new Date(row.at * 1000).toLocaleTimeString());
    line.append(at, text(row));
    return line;
  }));
}

function showTasks() {
  const rank = new Map([...rows.workers.entries()].map(([name, row]) => [name, row.rank]));
  const to = now(), found = [];
  for (const task of rows.tasks.values()) {
    const lane = rank.get(task.worker);
    if (lane !== undefined && task.end > to - WINDOW_US) found.push([lane, task]);
  }
  timeline.draw(found, rows.workers.size, to - WINDOW_US, to);
}

function sample() {
  const at = Date.now() / 1000, received = total("received");
  memoryChart(at, total("used"));
  if (before) bytesChart(at, Math.max(0, received - before.received) / Math.max(0.1, at - before.at));
  before = { at, received };
}

const SHOW = {
  workers: showWorkers, jobs: () => { showJobs(); if (picked) showPlan(); }, plans: showJobs, tasks: () => {}, arrays: showArrays, functions: showFunctions,
  losses: () => showLines("losses", (row) => row.text), logs: () => showLines("logs", (row) => `${row.where}: ${row.text}`),
};

const frames = [];
function show() {
  if (document.hidden || !clock) return;
  const begin = performance.now();
  for (const name of changed) SHOW[name]();
  if (changed.size) showSummary();
  changed.clear();
  showTasks();
  frames.push(performance.now() - begin);
  if (frames.length > 100) frames.shift();
  document.body.dataset.frame = Math.max(...frames).toFixed(1);
}

function listen() {
  const source = new EventSource(`/events?since=${version}`);
  source.onopen = () => { byId("light").classList.add("on"); byId("light").setAttribute("aria-label", "connected"); };
  source.onmessage = (message) => take(JSON.parse(message.data));
  source.onerror = () => {
    byId("light").classList.remove("on");
    byId("light").setAttribute("aria-label", "not connected");
    source.close();
    setTimeout(listen, 2000);
  };
}

byId("functions-anew").addEventListener("click", () => flames.anew());
document.querySelector(".lanes").addEventListener("scroll", () => { if (clock) showTasks(); });
listen();
setInterval(() => { if (clock) sample(); }, 1000);
setInterval(() => requestAnimationFrame(show), 500);
