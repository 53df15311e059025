// Tabs with the keys that people expect: arrows, Home and End.

import { h } from "./dom.js";

/** `tabs` are [id, name, note]; the address of each is `base/id`. */
export function tabList(label, base, tabs, chosen) {
  const links = tabs.map(([id, name, note, kind]) =>
    h("a", {
      "data-key": `tab-${id}`, id: `tab-${id}`, role: "tab", href: `${base}/${id}`, "aria-controls": "panel",
      "aria-selected": String(id === chosen), tabindex: id === chosen ? "0" : "-1",
    }, name, note ? h("span.note", { class: kind }, note) : null));
  return h("div.tabs", { role: "tablist", "aria-label": label, onkeydown: step }, links);
}

function step(event) {
  const tabs = [...event.currentTarget.querySelectorAll("[role=tab]")];
  const at = tabs.indexOf(document.activeElement);
  const next = {
    ArrowRight: (at + 1) % tabs.length, ArrowLeft: (at + tabs.length - 1) % tabs.length, Home: 0, End: tabs.length - 1,
  }[event.key];
  if (at < 0 || next === undefined) return;
  event.preventDefault();
  tabs[next].focus();
  location.hash = tabs[next].getAttribute("href");
}

/** Bring the chosen tab into view: a small screen has no room for all. */
export function showChosen(content) {
  const list = content.querySelector("[role=tablist]");
  const [frame, tab] = [list, list?.querySelector("[aria-selected=true]")].map((each) => each?.getBoundingClientRect());
  if (!frame || !tab) return;
  if (tab.right > frame.right) list.scrollLeft += tab.right - frame.right + 12;
  if (tab.left < frame.left) list.scrollLeft -= frame.left - tab.left + 12;
}
