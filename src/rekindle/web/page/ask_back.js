// A question before something is done to a job.

import { h } from "./dom.js";

/** Ask; null when the person says no, else what was filled in. */
export function ask({ title, text, directory, option, button, isDanger }) {
  const field = directory === undefined ? null : h("input", {
    type: "text", id: "ask-directory", spellcheck: "false", autocomplete: "off", value: directory, required: directory === "",
  });
  const box = option ? h("input", { type: "checkbox", id: "ask-option" }) : null;
  return new Promise((answer) => {
    const close = (value) => {
      dialog.close();
      dialog.remove();
      answer(value);
    };
    const dialog = h("dialog", { "aria-labelledby": "ask-title", "aria-describedby": "ask-text" },
      h("form", {
        onsubmit: (event) => {
          event.preventDefault();
          const given = field?.value.trim();
          close({ directory: given === directory ? "" : given, option: box?.checked ?? false });
        },
      },
      h("h2", { id: "ask-title" }, title),
      h("p", { id: "ask-text" }, text),
      field ? h("label", { for: "ask-directory" }, "Directory", field) : null,
      box ? h("label.check", { for: "ask-option" }, box, h("span", {}, option)) : null,
      h("div.actions", {},
        h("button", { type: "button", onclick: () => close(null) }, "No, go back"),
        h("button", { type: "submit", class: isDanger ? "danger solid" : "solid" }, button))));
    dialog.oncancel = (event) => {
      event.preventDefault();
      close(null);
    };
    document.getElementById("dialogs").replaceChildren(dialog);
    dialog.showModal();
  });
}
