"use strict";
// A flame graph that hangs: as wide as what a function took, under it those that it called. A click makes one as wide as the page.

class Flames {
  constructor(place, under) {
    this.place = place;
    this.under = under;
    this.every = [];
    this.before = new Map();
    this.top = "";
    place.addEventListener("click", (event) => {
      const stack = event.target.dataset.stack;
      if (stack !== undefined) { this.top = stack === this.top ? "" : stack; this.draw(); }
    });
    place.addEventListener("pointerover", (event) => { under.textContent = event.target.dataset.what || ""; });
    place.addEventListener("pointerleave", () => { under.textContent = ""; });
  }

  // Pairs of a stack, "f (a.py:1);g (a.py:5)", and the seconds that it was seen for.
  show(every) {
    this.every = every;
    this.draw();
  }

  // Count from now on.
  anew() {
    this.before = new Map(this.every);
    this.top = "";
    this.draw();
  }

  tree() {
    const root = { name: "all", stack: "", seconds: 0, inside: new Map() };
    for (const [stack, seconds] of this.every) {
      const took = seconds - (this.before.get(stack) || 0);
      if (took <= 0) continue;
      let at = root;
      root.seconds += took;
      for (const name of stack.split(";")) {
        const under = at.stack ? `${at.stack};${name}` : name;
        if (!at.inside.has(name)) at.inside.set(name, { name, stack: under, seconds: 0, inside: new Map() });
        at = at.inside.get(name);
        at.seconds += took;
      }
    }
    return root;
  }

  draw() {
    const root = this.tree(), boxes = [];
    let deepest = 0, top = root;
    for (const name of this.top ? this.top.split(";") : []) top = top.inside.get(name) || top;
    const add = (node, left, width, depth) => {
      if (width < 0.002) return;
      deepest = Math.max(deepest, depth);
      const box = document.createElement("div"), what = `${node.name}: ${Charts.seconds(node.seconds)}`;
      box.textContent = what;
      box.dataset.stack = node.stack;
      box.dataset.what = `${what}, ${Math.round(100 * node.seconds / root.seconds)} % of all`;
      box.style.left = `${100 * left}%`;
      box.style.width = `${100 * width}%`;
      box.style.top = `${20 * depth}px`;
      box.style.background = depth ? `hsl(${10 + Charts.hue(node.name) % 45} 80% 68%)` : "#c9ced6";
      boxes.push(box);
      let from = left;
      for (const child of [...node.inside.values()].sort((a, b) => b.seconds - a.seconds)) {
        const share = width * child.seconds / node.seconds;
        add(child, from, share, depth + 1);
        from += share;
      }
    };
    if (root.seconds) add(top, 0, 1, 0);
    this.place.style.height = `${20 * (deepest + 1)}px`;
    this.place.replaceChildren(...boxes);
  }
}
