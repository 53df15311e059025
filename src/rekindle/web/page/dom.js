// Elements from data, and updates that keep focus, selection and scroll. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: `h("a.name", { href }, "text", child)`. A property `onclick` is a listener, `style` an object. */
export function h(kind, properties, ...children) {
  const [tag, ...classes] = kind.split(".");
  return filled(document.createElement(tag), classes, properties, children);
}

/** An SVG element. */
export function s(kind, properties, ...children) {
  const [tag, ...classes] = kind.split(".");
  return filled(document.createElementNS(SVG, tag), classes, properties, children);
}

function filled(element, classes, properties, children) {
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [name, value] of Object.entries(properties ?? {})) put(element, name, value);
  for (const child of children.flat(Infinity)) {
    if (isThere(child)) element.append(child);
  }
  return element;
}

const isThere = (child) => child !== null && child !== undefined && child !== false && child !== "";

function put(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element[name] = value;
  else if (name === "class") element.setAttribute("class", [element.getAttribute("class"), value].filter(Boolean).join(" "));
  else if (name === "style") for (const [key, each] of Object.entries(value)) element.style.setProperty(key, each);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** Make the children of an element equal to these, changing as little as possible. */
export function render(parent, ...children) {
  const wanted = document.createElement("div");
  for (const child of children.flat(Infinity)) {
    if (isThere(child)) wanted.append(child);
  }
  updateChildren(parent, wanted);
}

/** The width that the content of the page has. */
export function contentWidth() {
  const content = document.getElementById("content");
  const { paddingLeft, paddingRight } = getComputedStyle(content);
  return Math.max(280, content.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
}

const LISTENERS = ["onclick", "onkeydown", "onsubmit", "ontoggle", "oninput"];
// What the person at the page has changed stays: an open part, a filled field.
const KEPT = new Set(["open", "value", "checked"]);

function updateChildren(parent, wanted) {
  const keyed = new Map();
  for (const child of parent.children) if (child.dataset?.key) keyed.set(child.dataset.key, child);
  let place = parent.firstChild;
  for (const next of [...wanted.childNodes]) {
    const found = keyed.get(next.dataset?.key) ?? (place && !place.dataset?.key ? place : null);
    if (found && isSame(found, next)) {
      if (found === place) place = place.nextSibling;
      else parent.insertBefore(found, place);
      update(found, next);
    } else {
      parent.insertBefore(next, place);
    }
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

function isSame(one, other) {
  return one.nodeName === other.nodeName && one.dataset?.key === other.dataset?.key;
}

function update(element, wanted) {
  if (element.nodeType === Node.TEXT_NODE) {
    if (element.data !== wanted.data) element.data = wanted.data;
    return;
  }
  for (const { name } of [...element.attributes]) {
    if (!wanted.hasAttribute(name) && !KEPT.has(name) && name !== "style") element.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    if (name !== "style" && !KEPT.has(name) && element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  if (element.style.cssText !== wanted.style.cssText) element.style.cssText = wanted.style.cssText;
  for (const name of LISTENERS) if (element[name] !== wanted[name]) element[name] = wanted[name];
  updateChildren(element, wanted);
}
