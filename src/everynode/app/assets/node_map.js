// The map of the nodes: a canvas that stays smooth with tens of thousands of dots.
// The server sends positions, classes, labels, certainty and flags as one block of numbers.
const PALETTE = 8;

export default {
  template: `
    <div class="node-map" tabindex="0" role="application"
         aria-label="Map of the nodes. Arrows move it, plus and minus zoom, 0 shows all.">
      <canvas ref="dots"></canvas><canvas ref="marks"></canvas>
      <div ref="tip" class="map-tip"></div>
    </div>`,
  props: { src: String, names: Array, titles: String },
  emits: ["pick", "drawn"],

  mounted() {
    this.n = 0;
    this.view = { k: 1, x: 0, y: 0 };
    this.filter = { color: "predicted" };
    this.selected = -1;
    this.near = [];
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.$el);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.recolor = () => { this.colors = null; this.draw(); };
    this.dark.addEventListener("change", this.recolor);
    const on = (name, handler) => this.$el.addEventListener(name, handler, { passive: false });
    on("wheel", (e) => { e.preventDefault(); this.zoom(Math.exp(-e.deltaY / 400), e.offsetX, e.offsetY); });
    on("pointerdown", (e) => this.down(e));
    on("pointermove", (e) => this.move(e));
    on("pointerup", (e) => this.up(e));
    on("pointercancel", () => { this.pointers.clear(); });
    on("pointerleave", () => { this.$refs.tip.style.display = "none"; });
    on("dblclick", (e) => this.zoom(2, e.offsetX, e.offsetY));
    on("keydown", (e) => this.key(e));
    this.pointers = new Map();
    this.load();
  },

  unmounted() {
    this.resize.disconnect();
    this.dark.removeEventListener("change", this.recolor);
  },

  watch: { src() { this.load(); }, names() { this.colors = null; this.draw(); } },

  methods: {
    async load() {
      if (!this.src) return;
      const asked = this.src;
      const buffer = await (await fetch(asked)).arrayBuffer();
      if (asked !== this.src) return;
      const n = new Uint32Array(buffer, 0, 1)[0];
      const old = this.n === n ? this.xy : null;
      let at = 4;
      const take = (kind, count) => { const part = new kind(buffer.slice(at, at + count * kind.BYTES_PER_ELEMENT)); at += part.byteLength; return part; };
      const xy = take(Float32Array, 2 * n);
      this.predicted = take(Int16Array, n);
      this.label = take(Int16Array, n);
      this.certainty = take(Uint8Array, n);
      this.flags = take(Uint8Array, n);
      this.n = n;
      this.shown = new Uint8Array(n).fill(1);
      this.apply(this.filter);
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
      if (old && !still) this.glide(old, xy); else { this.xy = xy; this.draw(); }
      requestAnimationFrame(() => requestAnimationFrame(() => { this.$el.dataset.drawn = Date.now(); this.$emit("drawn", n); }));
      if (this.titles) this.words = await (await fetch(this.titles)).json();
    },

    // Move the dots from the places of the last round to the new ones.
    glide(from, to) {
      const start = performance.now(), xy = new Float32Array(to.length);
      this.xy = xy;
      const step = (now) => {
        const t = Math.min(1, (now - start) / 700), s = t * t * (3 - 2 * t);
        for (let i = 0; i < xy.length; i++) xy[i] = from[i] + s * (to[i] - from[i]);
        this.paint();
        if (t < 1 && this.xy === xy) requestAnimationFrame(step);
      };
      requestAnimationFrame(step);
    },

    fit() {
      const { clientWidth: w, clientHeight: h } = this.$el, ratio = window.devicePixelRatio || 1;
      if (!w || !h) return;
      for (const canvas of [this.$refs.dots, this.$refs.marks]) {
        canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
        canvas.style.width = w + "px"; canvas.style.height = h + "px";
        canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
      }
      this.w = w; this.h = h;
      if (!this.moved) this.home(); else this.draw();
    },
    home() {
      const k = 0.46 * Math.min(this.w, this.h);
      this.view = { k, x: this.w / 2, y: this.h / 2 };
      this.moved = false;
      this.draw();
    },
    zoom(factor, x = this.w / 2, y = this.h / 2) {
      const v = this.view, k = Math.min(Math.max(v.k * factor, 20), 2e6), f = k / v.k;
      this.view = { k, x: x + (v.x - x) * f, y: y + (v.y - y) * f };
      this.moved = true;
      this.draw();
    },
    pan(dx, dy) { this.view.x += dx; this.view.y += dy; this.moved = true; this.draw(); },
    show(node) { // bring a node to the middle, and closer if all are in sight
      if (node < 0 || node >= this.n) return;
      const k = Math.max(this.view.k, 1.2 * Math.min(this.w, this.h));
      this.view = { k, x: this.w / 2 - k * this.xy[2 * node], y: this.h / 2 - k * this.xy[2 * node + 1] };
      this.moved = true;
      this.draw();
    },

    // ---- what the page asks for
    apply(filter) {
      this.filter = filter;
      if (!this.n) return;
      const classes = filter.classes && new Set(filter.classes), only = filter.nodes && new Set(filter.nodes);
      const low = Math.round(255 * (filter.low ?? 0)), high = Math.round(255 * (filter.high ?? 1));
      for (let i = 0; i < this.n; i++)
        this.shown[i] = (!classes || classes.has(this.predicted[i])) && (!only || only.has(i)) &&
          this.certainty[i] >= low && this.certainty[i] <= high &&
          (!filter.differs || this.flags[i] & 1) ? 1 : 0;
      this.order = null;
      this.draw();
      return this.shown.reduce((a, b) => a + b, 0);
    },
    select(node, near, center) {
      this.selected = node; this.near = near;
      if (center) this.show(node); else this.draw();
    },
    relabel(pairs) {
      for (const [node, label] of pairs) if (node < this.n) this.label[node] = label;
      this.order = null;
      this.draw();
    },

    // ---- drawing
    draw() {
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; this.paint(); });
    },
    palette() {
      if (this.colors) return this.colors;
      const probe = document.createElement("i");
      this.$el.append(probe);
      const color = (value) => { probe.style.color = value; return getComputedStyle(probe).color; };
      const own = Array.from({ length: PALETTE }, (_, i) => color(`var(--c${i})`));
      const more = Math.max(0, (this.names || []).length - PALETTE);
      for (let i = 0; i < more; i++) own.push(`hsl(${(i * 137.5 + 20) % 360} 55% 50%)`);
      const sure = Array.from({ length: 6 }, (_, i) => color(`color-mix(in oklab, var(--c1) ${100 - 20 * i}%, var(--c0))`));
      this.colors = { own, sure, none: color("var(--rule)"), gray: color("var(--quiet)"), ink: color("var(--ink)"), card: color("var(--card)") };
      probe.remove();
      return this.colors;
    },
    code(i) {
      if (this.filter.color === "certainty") return Math.min(5, Math.floor(this.certainty[i] / 42.6));
      return this.filter.color === "label" ? this.label[i] : this.predicted[i];
    },
    // The dots in the order of drawing: those out of the filter, then one color after the other.
    sorted() {
      if (this.order) return this.order;
      const key = new Int32Array(this.n);
      for (let i = 0; i < this.n; i++) key[i] = this.shown[i] ? 2 + this.code(i) : 0;
      const order = Uint32Array.from({ length: this.n }, (_, i) => i).sort((a, b) => key[a] - key[b]);
      return (this.order = { order, key });
    },
    paint() {
      const canvas = this.$refs.dots;
      if (!canvas || !this.n || !this.w || !this.xy) return;
      const c = canvas.getContext("2d"), { k, x, y } = this.view, { xy, w, h } = this;
      const colors = this.palette(), { order, key } = this.sorted();
      const palette = this.filter.color === "certainty" ? colors.sure : colors.own;
      const base = this.n > 20000 ? 1.6 : this.n > 5000 ? 2.1 : this.n > 1000 ? 2.8 : 4;
      const r = Math.min(9, base * Math.sqrt(Math.max(1, k / (0.46 * Math.min(w, h)))));
      c.clearRect(0, 0, w, h);
      let last = -1;
      const round = r > 2.4;
      const stamp = round ? (color) => this.stamp(color, r) : null;
      let image = null;
      for (let j = 0; j < order.length; j++) {
        const i = order[j], px = x + k * xy[2 * i], py = y + k * xy[2 * i + 1];
        if (px < -r || py < -r || px > w + r || py > h + r) continue;
        if (key[i] !== last) {
          last = key[i];
          const color = last === 0 ? colors.none : last === 1 ? colors.gray : palette[last - 2] || colors.gray;
          c.globalAlpha = last === 0 ? 0.45 : last === 1 ? 0.4 : 0.85;
          if (round) image = stamp(color); else c.fillStyle = color;
        }
        if (round) c.drawImage(image, px - r, py - r, 2 * r, 2 * r);
        else c.fillRect(px - r, py - r, 2 * r, 2 * r);
      }
      c.globalAlpha = 1;
      this.mark();
      this.frames = (this.frames || 0) + 1;
    },
    // One dot as an image: copying it is much faster than drawing an arc.
    stamp(color, r) {
      const size = Math.ceil(2 * r * (window.devicePixelRatio || 1));
      const name = color + size;
      this.stamps = this.stamps || new Map();
      if (!this.stamps.has(name)) {
        if (this.stamps.size > 400) this.stamps.clear();
        const dot = document.createElement("canvas");
        dot.width = dot.height = size;
        const c = dot.getContext("2d");
        c.fillStyle = color;
        c.beginPath(); c.arc(size / 2, size / 2, size / 2, 0, 7); c.fill();
        this.stamps.set(name, dot);
      }
      return this.stamps.get(name);
    },
    // Labels as rings, the selected node with lines to its neighbors.
    mark() {
      const c = this.$refs.marks.getContext("2d"), { k, x, y } = this.view, { xy, w, h } = this;
      const colors = this.palette();
      const at = (i) => [x + k * xy[2 * i], y + k * xy[2 * i + 1]];
      c.clearRect(0, 0, w, h);
      c.lineWidth = 1.4; c.strokeStyle = colors.ink;
      c.beginPath();
      const r = Math.min(10, 3.4 * Math.sqrt(Math.max(1, k / (0.46 * Math.min(w, h)))));
      for (let i = 0; i < this.n; i++) {
        if (this.label[i] < 0 || !this.shown[i]) continue;
        const [px, py] = at(i);
        if (px < 0 || py < 0 || px > w || py > h) continue;
        c.moveTo(px + r, py); c.arc(px, py, r, 0, 7);
      }
      c.stroke();
      if (this.selected < 0 || this.selected >= this.n) return;
      const [sx, sy] = at(this.selected);
      c.strokeStyle = colors.gray; c.globalAlpha = 0.6; c.lineWidth = 1;
      c.beginPath();
      for (const i of this.near) { if (i < this.n) { c.moveTo(sx, sy); c.lineTo(...at(i)); } }
      c.stroke();
      c.globalAlpha = 1;
      for (const [width, color, radius] of [[5, colors.card, r + 5], [2.5, colors.ink, r + 5]]) {
        c.lineWidth = width; c.strokeStyle = color;
        c.beginPath(); c.arc(sx, sy, radius, 0, 7); c.stroke();
      }
    },

    // ---- mouse, finger and keyboard
    nearest(px, py, within) {
      const { k, x, y } = this.view;
      let best = -1, least = within * within;
      for (let i = 0; i < this.n; i++) {
        if (!this.shown[i]) continue;
        const dx = x + k * this.xy[2 * i] - px, dy = y + k * this.xy[2 * i + 1] - py, d = dx * dx + dy * dy;
        if (d < least) { least = d; best = i; }
      }
      return best;
    },
    place(e) { const box = this.$el.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; },
    down(e) {
      this.$el.setPointerCapture(e.pointerId);
      this.pointers.set(e.pointerId, this.place(e));
      this.dragged = false;
    },
    move(e) {
      const now = this.place(e), before = this.pointers.get(e.pointerId);
      if (!before) { this.hover(...now); return; }
      const others = [...this.pointers].filter(([id]) => id !== e.pointerId);
      if (others.length) { // two fingers zoom
        const [ox, oy] = others[0][1], gap = (p) => Math.hypot(p[0] - ox, p[1] - oy);
        this.zoom(gap(now) / Math.max(gap(before), 1), ox, oy);
        this.dragged = true;
      } else if (this.dragged || Math.hypot(now[0] - before[0], now[1] - before[1]) > 3) {
        this.dragged = true;
        this.pan(now[0] - before[0], now[1] - before[1]);
      } else return;
      this.pointers.set(e.pointerId, now);
    },
    up(e) {
      this.pointers.delete(e.pointerId);
      if (this.dragged) return;
      const node = this.nearest(...this.place(e), 14);
      if (node >= 0) this.$emit("pick", node);
    },
    hover(px, py) {
      const tip = this.$refs.tip, node = this.n ? this.nearest(px, py, 9) : -1;
      tip.style.display = node < 0 ? "none" : "block";
      if (node < 0) return;
      const name = (this.words && this.words[node]) || String(node);
      const best = (this.names || [])[this.predicted[node]] ?? "";
      tip.textContent = `${name}: ${best}, ${Math.round(this.certainty[node] / 2.55)} %`;
      tip.style.left = Math.min(px + 14, this.w - tip.offsetWidth - 4) + "px";
      tip.style.top = Math.max(4, py - 34) + "px";
    },
    key(e) {
      const step = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[e.key];
      if (step) this.pan(...step);
      else if (e.key === "+" || e.key === "=") this.zoom(1.4);
      else if (e.key === "-") this.zoom(1 / 1.4);
      else if (e.key === "0") this.home();
      else return;
      e.preventDefault();
    },
  },
};
