// SPDX-License-Identifier: Apache-2.0
// Makes elements. Text becomes text nodes and never markup, so a file name with tags stays a name.
// Styles that depend on data are set through the CSS object model, since the server's policy
// refuses style attributes.

const properties = new Set(['value', 'checked', 'disabled', 'selected', 'htmlFor', 'open', 'hidden']);

// h('div.card', {onclick: f, 'aria-label': text}, child, …): false, null and undefined leave out.
export function h(spec, attributes, ...children) {
  const [tag, ...classes] = spec.split('.');
  const element = document.createElement(tag || 'div');
  if (classes.length) element.className = classes.join(' ');
  const has = attributes && typeof attributes === 'object' && !attributes.nodeType &&
    !Array.isArray(attributes);
  if (!has) children.unshift(attributes);
  for (const [name, value] of Object.entries(has ? attributes : {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'part') setPart(element, value);
    else if (properties.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of [children].flat(4)) {
    if (child === null || child === undefined || child === false || child === '') continue;
    element.append(child.nodeType ? child : document.createTextNode(String(child)));
  }
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

// The width of a bar, as a share from 0 to 1.
export function setPart(element, share) {
  const percent = Math.max(0, Math.min(1, Number.isFinite(share) ? share : 0)) * 100;
  element.style.setProperty('--part', `${percent.toFixed(2)}%`);
}

export function setText(element, text) {
  const value = String(text);
  if (element.textContent !== value) element.textContent = value;
}

const svgNamespace = 'http://www.w3.org/2000/svg';

export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  append(element, children);
  return element;
}

// Keeps one node for each key, so that focus and open details survive an update.
// make(item) returns {node, update(item)}.
export function reconcile(container, items, keyOf, make) {
  const known = container.knownParts ?? (container.knownParts = new Map());
  const wanted = new Set(items.map(keyOf));
  for (const [key, part] of known) {
    if (wanted.has(key)) continue;
    part.node.remove();
    known.delete(key);
  }
  let place = container.firstElementChild;
  for (const item of items) {
    const key = keyOf(item);
    let part = known.get(key);
    if (!part) known.set(key, part = make(item));
    part.update(item);
    if (part.node === place) place = place.nextElementSibling;
    else container.insertBefore(part.node, place);
  }
}

let lastId = 0;
export const freshId = (stem) => `${stem}-${++lastId}`;
