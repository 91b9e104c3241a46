// Optional features: theme, sorting of tables, hover boxes, selection of a series. All content is in the markup.
"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, text) => Object.assign(document.createElement(name), text === undefined ? {} : { textContent: text });

  // ---- theme: the system's, light, dark
  const themes = ["system", "light", "dark"];
  const memory = {
    get() { try { return localStorage.getItem("everynode-theme"); } catch { return null; } },
    set(value) { try { localStorage.setItem("everynode-theme", value); } catch { /* a page opened from a file may have no storage */ } },
  };
  const button = document.getElementById("theme");
  const show = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
  };
  if (button) {
    let theme = themes.includes(memory.get()) ? memory.get() : "system";
    button.hidden = false;
    show(theme);
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      memory.set(theme);
      show(theme);
    });
  }

  // ---- tables: a click on a head sorts by its column, a second one in reverse, a third one restores the order; empty cells stay last
  const plain = (text) => text.replace(/(?<=\d),(?=\d{3})/g, "").replace(/^−/, "-"); // numbers are written for people
  const key = (cell) => (cell ? cell.dataset.v ?? plain(cell.textContent.trim()) : "");
  const order = (a, b) => (a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a < b ? -1 : a > b ? 1 : 0);
  for (const table of all("table.sortable")) {
    const body = table.tBodies[0];
    const first = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const sorter = make("button");
      sorter.type = "button";
      sorter.append(...head.childNodes);
      head.append(sorter);
      sorter.addEventListener("click", () => {
        const before = head.getAttribute("aria-sort");
        const down = before === "ascending" ? -1 : 1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (before === "descending") {
          body.append(...first);
          return;
        }
        head.setAttribute("aria-sort", down > 0 ? "ascending" : "descending");
        const rows = first.map((row) => [key(row.cells[column]), row]);
        rows.sort(([a], [b]) => (a === "") - (b === "") || down * order(a, b));
        body.append(...rows.map(([, row]) => row));
      });
    });
  }

  // ---- legends: a click selects one series in the plots beside it
  for (const legend of all(".figure > .legend")) {
    const figure = legend.parentElement;
    for (const entry of all("li", legend)) {
      const pick = make("button");
      pick.type = "button";
      pick.setAttribute("aria-pressed", "false");
      pick.append(...entry.childNodes);
      entry.append(pick);
      pick.addEventListener("click", () => {
        const on = pick.getAttribute("aria-pressed") !== "true";
        all("button", legend).forEach((other) => other.setAttribute("aria-pressed", String(on && other === pick)));
        figure.classList.toggle("picked", on);
        all(".plot [data-series]", figure).forEach((mark) => mark.classList.toggle("on", on && mark.dataset.series === entry.dataset.series));
      });
    }
  }

  // ---- plots: a box with the values at the nearest x, by mouse, touch, or the arrow keys
  const tip = make("div");
  tip.id = "tip";
  tip.setAttribute("role", "status");
  tip.popover = "manual"; // above the side panel too
  document.body.append(tip);
  const hide = () => {
    if (tip.matches(":popover-open")) tip.hidePopover();
    all(".cross").forEach((line) => line.remove());
  };

  // Places along x, each with its head and lines of text, read from the marks or from the path of a curve.
  const places = (plot) => {
    if (plot.places) return plot.places;
    const found = new Map();
    const add = (x, head, line, opens) => {
      if (!found.has(x)) found.set(x, { x, head, opens: [], lines: [] });
      found.get(x).lines.push(line);
      found.get(x).opens.push(opens);
    };
    for (const { dataset: mark } of all("[data-tip]", plot)) add(Number(mark.x), mark.head, `${mark.name}: ${mark.tip}`, mark.opens);
    if (plot.dataset.scale) {
      const [x0, x1, left, right, y0, y1, bottom, top, fine] = plot.dataset.scale.split(" ").map(Number);
      // A path has whole coordinates: show no more decimals than these justify.
      const decimals = Math.max(0, -Math.ceil(Math.log10((y1 - y0) / (bottom - top) / fine)));
      for (const curve of all(".curve", plot)) {
        const steps = (curve.getAttribute("d").match(/-?\d+/g) || []).map(Number);
        let x = 0, y = 0;
        for (let i = 0; i + 1 < steps.length; i += 2) {
          x += steps[i];
          y += steps[i + 1];
          const at = left + ((x - x0) / (x1 - x0)) * (right - left);
          const value = y0 + ((y / fine - bottom) / (top - bottom)) * (y1 - y0);
          add(at, `${plot.dataset.x} ${x}`, `${curve.dataset.name}: ${Math.abs(value) < 0.5 / 10 ** decimals ? (0).toFixed(decimals) : value.toFixed(decimals).replace("-", "−")}`);
        }
      }
    }
    plot.places = [...found.values()].sort((a, b) => a.x - b.x);
    return plot.places;
  };
  const point = (plot, place) => {
    hide();
    const box = plot.getBoundingClientRect();
    const view = plot.viewBox.baseVal;
    const line = plot.querySelector("path").cloneNode();
    line.setAttribute("class", "cross");
    line.setAttribute("d", `M${place.x} 30V${view.height - 42}`);
    plot.append(line);
    plot.place = place;
    const lines = place.lines.map((text) => make("div", text));
    if (plot.chosen !== undefined) lines[plot.chosen % lines.length].className = "chosen";
    tip.replaceChildren(make("b", place.head), ...lines);
    tip.showPopover();
    const at = box.left + (place.x / view.width) * box.width;
    const size = tip.getBoundingClientRect();
    const side = at + 14 + size.width < innerWidth ? at + 14 : Math.max(4, at - 14 - size.width);
    tip.style.left = `${Math.min(side, Math.max(4, innerWidth - size.width - 4))}px`;
    tip.style.top = `${Math.max(4, Math.min(box.top + 20, innerHeight - size.height - 4))}px`;
  };
  for (const plot of all(".plot:not(.map)")) {
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width;
      const near = places(plot).reduce((best, place) => (best && Math.abs(best.x - x) <= Math.abs(place.x - x) ? best : place), null);
      if (near) point(plot, near);
    });
    plot.addEventListener("pointerleave", hide);
    plot.addEventListener("blur", hide);
    plot.addEventListener("keydown", (event) => {
      const opens = plot.place && plot.place.opens[(plot.chosen || 0) % plot.place.opens.length];
      if (event.key === "Enter" && opens) {
        hide();
        document.getElementById(opens).showPopover();
        return;
      }
      const other = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (other && opens) { // selects the value that Enter opens
        event.preventDefault();
        const count = plot.place.opens.length;
        plot.chosen = plot.chosen === undefined ? (other > 0 ? 0 : count - 1) : (plot.chosen + other + count) % count;
        point(plot, plot.place);
        return;
      }
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step || !places(plot).length) return;
      event.preventDefault();
      const now = places(plot).indexOf(plot.place);
      point(plot, places(plot)[now < 0 ? (step > 0 ? 0 : places(plot).length - 1) : Math.min(Math.max(now + step, 0), places(plot).length - 1)]);
    });
    plot.addEventListener("click", (event) => {
      const opens = event.target.dataset && event.target.dataset.opens;
      if (opens) {
        hide();
        document.getElementById(opens).showPopover();
      }
    });
  }
  addEventListener("scroll", hide, { passive: true, capture: true });

  // ---- an address that names a cell opens it; the contents show where one is
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.matches("[popover]")) target.showPopover();
  };
  addEventListener("hashchange", open);
  open();
  const links = new Map(all("nav a").map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      links.forEach((link, id) => (id === entry.target.id ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current")));
    }
  }, { rootMargin: "-15% 0px -75% 0px" });
  all("main > section[id]").filter((section) => links.has(section.id)).forEach((section) => watch.observe(section));
})();
