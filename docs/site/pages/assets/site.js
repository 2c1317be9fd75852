"use strict";
// What scrolls sideways can be scrolled by keyboard in every browser.
(() => {
  const reach = () => {
    for (const code of document.querySelectorAll(".md-typeset pre > code")) {
      if (code.scrollWidth > code.clientWidth) code.tabIndex = 0;
    }
    for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap, .plots, .md-typeset p:has(> img)")) {
      if (wrap.scrollWidth > wrap.clientWidth) {
        wrap.tabIndex = 0;
        wrap.setAttribute("role", "region");
        if (!wrap.hasAttribute("aria-label")) wrap.setAttribute("aria-label", "Scrolls sideways");
      }
    }
  };
  window.addEventListener("load", () => setTimeout(reach));
  window.addEventListener("resize", reach);
})();

// Narrows the table of all claims down; without it the table is whole.
(() => {
  const form = document.querySelector("form.filter");
  const table = document.getElementById("claims");
  if (!form || !table) return;
  const rows = [...table.tBodies[0].rows];
  const told = form.querySelector("output");
  const narrow = () => {
    const paper = form.elements.paper.value;
    const status = form.elements.status.value;
    const words = form.elements.words.value.trim().toLowerCase();
    let shown = 0;
    for (const row of rows) {
      const fits = (!paper || row.dataset.paper === paper)
        && (!status || row.dataset.status === status)
        && (!words || row.textContent.toLowerCase().includes(words));
      row.hidden = !fits;
      shown += fits;
    }
    told.textContent = `${shown} of ${rows.length}`;
  };
  form.addEventListener("input", narrow);
  form.addEventListener("submit", (event) => event.preventDefault());
  narrow();
})();

// Moving pictures: scenes that were made of a trace, drawn one after the other. They begin by
// themselves where motion is welcome, once they are seen; otherwise each step is drawn as it ends.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const STEP_MS = 1500, MOVE_MS = 900;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");

  const add = (parent, kind, attributes, text) => {
    const element = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };

  const rows = (svg, scene) => {
    Object.entries(scene.rows).forEach(([name, cells], row) => {
      const top = 150 + row * 52, wide = Math.min(40, 380 / cells.length);
      add(svg, "text", { x: 20, y: top, class: "left name" }, name);
      cells.forEach(([text, look], place) => {
        const x = 20 + place * wide;
        add(svg, "rect", { x, y: top + 6, width: wide - 3, height: 20, rx: 2, class: `cell ${look}` });
        add(svg, "text", { x: x + (wide - 3) / 2, y: top + 20 }, text);
      });
      if (row === 0 && scene.covers && scene.look === "mixed") {
        const [from, to] = scene.covers;
        add(svg, "path", { class: "covers",
          d: `M${20 + from * wide} ${top + 31} H${20 + (to + 1) * wide - 3}` });
      }
    });
  };

  // Draws a scene with its frame a share of the way.
  const draw = (picture, place, share) => {
    const { svg, data } = picture, scene = data.scenes[place];
    const before = data.scenes[Math.max(0, place - 1)];
    svg.replaceChildren();
    const [x0, y0] = data.stations[scene.source];
    for (const station of Object.keys(scene.reaches)) {
      const [x1, y1] = data.stations[station];
      add(svg, "path", { class: "path", d: `M${x0} ${y0} L${x1} ${y1}` });
    }
    for (const [name, [x, y]] of Object.entries(data.stations)) {
      add(svg, "circle", { cx: x, cy: y, r: 22, class: "station" });
      add(svg, "text", { x, y: y - 28, class: "name" }, name);
    }
    for (const [station, arrives] of Object.entries(scene.reaches)) {
      const [x1, y1] = data.stations[station];
      // What is lost does not arrive.
      const far = arrives === "yes" ? share : Math.min(share, 0.6);
      const x = x0 + (x1 - x0) * far, y = y0 + (y1 - y0) * far;
      if (arrives === "no" && share >= 0.6) {
        add(svg, "text", { x, y: y + 4, style: "fill: var(--lost); font-size: 20px" }, "×");
        continue;
      }
      const group = add(svg, "g", { class: `frame ${scene.look}` });
      const wide = Math.max(26, 9 + scene.label.length * 8);
      add(group, "rect", { x: x - wide / 2, y: y - 10, width: wide, height: 20, rx: 3 });
      add(group, "text", { x, y: y + 4 }, scene.label);
    }
    add(svg, "text", { x: 210, y: 14 }, `${scene.ms.toFixed(1)} ms`);
    rows(svg, share < 1 && place > 0 ? { ...before, covers: scene.covers, look: scene.look } : scene);
  };

  for (const figure of document.querySelectorAll(".moving")) {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const picture = { svg: figure.querySelector("svg"), data };
    const controls = figure.querySelector(".controls");
    const range = controls.querySelector("input"), told = controls.querySelector("output");
    const play = controls.querySelector("[data-act=play]");
    let place = 0, running = false, begun = 0, handle = 0;

    const show = (share) => {
      draw(picture, place, share);
      range.value = place;
      const words = `Step ${place + 1} of ${data.scenes.length}. ${data.scenes[place].words}`;
      if (told.textContent !== words) told.textContent = words;
      range.setAttribute("aria-valuetext", words);
    };
    const halt = () => {
      running = false;
      cancelAnimationFrame(handle);
      play.textContent = "Play";
      // Said aloud when asked for, not while it runs.
      told.setAttribute("aria-live", "polite");
    };
    const tick = (now) => {
      if (!running) return;
      const since = now - begun;
      show(still.matches ? 1 : Math.min(1, since / MOVE_MS));
      if (since >= STEP_MS) {
        if (place + 1 === data.scenes.length) return halt();
        place += 1;
        begun = now;
      }
      handle = requestAnimationFrame(tick);
    };
    const run = () => {
      if (place + 1 === data.scenes.length) place = 0;
      running = true;
      told.setAttribute("aria-live", "off");
      play.textContent = "Pause";
      begun = performance.now();
      handle = requestAnimationFrame(tick);
    };
    const go = (to) => {
      halt();
      place = Math.max(0, Math.min(data.scenes.length - 1, to));
      show(1);
    };
    controls.addEventListener("click", (event) => {
      const act = event.target.dataset.act;
      if (act === "play") running ? halt() : run();
      if (act === "back") go(place - 1);
      if (act === "on") go(place + 1);
    });
    range.addEventListener("input", () => go(Number(range.value)));
    controls.hidden = false;
    show(1);
    if (!still.matches && "IntersectionObserver" in window) {
      const seen = new IntersectionObserver((entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        seen.disconnect();
        run();
      }, { threshold: 0.8 });
      seen.observe(figure);
    }
  }
})();
