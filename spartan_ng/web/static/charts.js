"use strict";
// Drawing: lines over time by uPlot, and the tasks of each worker on a canvas.

const Charts = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function bytes(n) {
    const units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let k = 0;
    while (Math.abs(n) >= 1000 && k + 1 < units.length) { n /= 1000; k += 1; }
    return `${k && n < 100 ? n.toFixed(1) : Math.round(n)} ${units[k]}`;
  }

  function seconds(s) {
    if (s < 1e-3) return `${Math.round(s * 1e6)} µs`;
    if (s < 1) return `${(s * 1e3).toFixed(s < 0.1 ? 1 : 0)} ms`;
    return s < 120 ? `${s.toFixed(1)} s` : `${Math.round(s / 60)} min`;
  }

  // A line over the last `most` samples of `[seconds, value]`.
  function line(place, most) {
    const data = [[], []];
    const axis = () => ({
      stroke: () => colour("--faint"), grid: { stroke: () => colour("--line"), width: 1 }, ticks: { show: false },
    });
    // Told by the samples: of none, or of a single one, uPlot makes years.
    const span = () => {
      const last = data[0].at(-1) ?? Date.now() / 1e3;
      return [Math.min(data[0][0] ?? last, last - 30), last];
    };
    const plot = new uPlot({
      width: place.clientWidth || 300, height: 180, cursor: { show: false }, legend: { show: false },
      scales: { x: { range: span }, y: { range: (u, low, high) => [0, Math.max(10, high * 1.1)] } },
      axes: [axis(), { ...axis(), size: 64, values: (u, ticks) => ticks.map(bytes) }],
      series: [{}, { stroke: () => colour("--accent"), width: 2, fill: () => colour("--accent") + "22" }],
    }, data, place);
    const fit = () => plot.setSize({ width: place.clientWidth || 300, height: 180 });
    new ResizeObserver(fit).observe(place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw());
    return (at, value) => {
      data[0].push(at);
      data[1].push(value);
      if (data[0].length > most) { data[0].shift(); data[1].shift(); }
      plot.setData(data);
    };
  }

  // The same colour for the same stage, told apart in both themes.
  const hues = new Map();
  function hue(name) {
    let found = hues.get(name);
    if (found === undefined) {
      let h = 0;
      for (let i = 0; i < name.length; i += 1) h = (h * 31 + name.charCodeAt(i)) >>> 0;
      found = h % 360;
      hues.set(name, found);
    }
    return found;
  }

  const LEFT = 42, FOOT = 18;

  class Timeline {
    constructor(canvas, under) {
      this.canvas = canvas;
      this.boxes = [];
      canvas.addEventListener("pointermove", (event) => { under.textContent = this.at(event); });
      canvas.addEventListener("pointerleave", () => { under.textContent = ""; });
      const again = () => { if (this.drawn) this.draw(...this.drawn); };
      new ResizeObserver(again).observe(canvas.parentElement.parentElement);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    }

    // Tasks [rank, {name, begin, end, bytes}] in microseconds, between two times. Of many lanes those are drawn that are
    // scrolled to: a canvas as high as all of them takes longer than a frame.
    draw(tasks, lanes, from, to) {
      this.drawn = [tasks, lanes, from, to];
      const canvas = this.canvas, room = canvas.parentElement, view = room.parentElement, width = room.clientWidth || 300;
      const high = lanes > 60 ? 3 : lanes > 16 ? 12 : 22;
      room.style.height = `${Math.max(1, lanes) * high + FOOT}px`;
      const height = view.clientHeight, above = view.scrollTop, foot = height - FOOT;
      const scale = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
        canvas.width = Math.round(width * scale);
        canvas.height = Math.round(height * scale);
        canvas.style.height = `${height}px`;
      }
      const pen = canvas.getContext("2d");
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      pen.font = "11px system-ui, sans-serif";
      pen.fillStyle = colour("--faint");
      for (let k = 0; k < lanes; k += Math.max(1, Math.ceil(14 / high))) {
        const at = k * high - above + Math.min(high - 3, 14) + (high < 8 ? 8 : 0);
        if (at > 0 && at < foot) pen.fillText(`${k}`, 4, at);
      }
      const x = (t) => LEFT + (t - from) / (to - from) * (width - LEFT);
      pen.strokeStyle = colour("--line");
      for (let k = 0; k <= 5; k += 1) {
        const at = LEFT + (width - LEFT) * k / 5;
        pen.beginPath(); pen.moveTo(at, 0); pen.lineTo(at, height - FOOT); pen.stroke();
        const label = `${Math.round((to - from) / 1e6 * (k - 5) / 5)} s`;
        pen.textAlign = k === 5 ? "right" : k ? "center" : "left";
        pen.fillText(label, at, height - 4);
      }
      pen.textAlign = "left";
      this.boxes = [];
      const moved = colour("--moved");
      for (const [rank, task] of tasks) {
        const left = Math.max(LEFT, x(task.begin)), right = Math.min(width, x(task.end)), top = rank * high + 1 - above;
        if (right <= LEFT || left >= width || top < 0 || top + high - 2 > foot) continue;
        const box = [left, top, Math.max(1, right - left), high - 2];
        pen.fillStyle = task.error ? colour("--bad") : `hsl(${hue(task.name)} 55% ${dark ? 48 : 62}%)`;
        pen.fillRect(...box);
        if (task.bytes && high > 6) { pen.fillStyle = moved; pen.fillRect(box[0], box[1] + box[3] - 3, box[2], 3); }
        if (box[2] > 60 && high >= 20) {
          pen.save(); pen.beginPath(); pen.rect(...box); pen.clip();
          pen.fillStyle = dark ? "#fff" : "#111"; pen.fillText(task.name, left + 4, box[1] + 14); pen.restore();
        }
        this.boxes.push([box, rank, task]);
      }
    }

    at(event) {
      const place = this.canvas.getBoundingClientRect(), px = event.clientX - place.left, py = event.clientY - place.top;
      for (let i = this.boxes.length - 1; i >= 0; i -= 1) {
        const [[x, y, w, h], rank, task] = this.boxes[i];
        if (px >= x - 1 && px <= x + w + 1 && py >= y && py <= y + h) {
          const text = `worker ${rank}: ${task.name}, ${seconds((task.end - task.begin) / 1e6)}${task.error ? `, failed: ${task.error}` : ""}`;
          return task.bytes ? `${text}, received ${bytes(task.bytes)}` : text;
        }
      }
      return "";
    }
  }

  return { bytes, seconds, hue, line, Timeline };
})();
