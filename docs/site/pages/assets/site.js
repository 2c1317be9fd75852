"use strict";
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
