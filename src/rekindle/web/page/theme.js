// Runs before anything is drawn, so that the page never flashes in the other theme. No module for that reason.
"use strict";
(() => {
  const kept = (() => {
    try {
      return localStorage.getItem("rekindle-theme");
    } catch {
      return null; // a browser that keeps nothing for this page
    }
  })();
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
