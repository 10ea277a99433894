// SPDX-License-Identifier: Apache-2.0
// The dialog that chooses files and folders. The server lists them with the user's rights, so that
// paths are real; a browser's own dialog would give contents without a place.
import { get, post, session } from './api.js';
import { fill, freshId, h } from './dom.js';
import { field, check, textInput } from './fields.js';
import { bytes, dateTime } from './format.js';
import { t } from './i18n.js';
import { icon } from './icons.js';
import { crumbs, shown, typed } from './paths.js';
import { button, dialog, errorNote, iconButton } from './ui.js';

const isFolder = (entry) => entry.kind === 'folder' || entry.kind === 'link_to_folder';
const isFile = (entry) => entry.kind === 'file' || entry.kind === 'link_to_file';
const placeIcons = { home: 'home', volume: 'volume', root: 'disk', media: 'disk' };
let lastFolder;

// Resolves with the chosen entries, or null. mode: 'files' (files, and folders if `folders`), 'folder'.
export function choose({ mode = 'files', title, multiple = false, folders = false, matches = () => true, start }) {
  const picker = new Picker({ mode, multiple, folders, matches });
  const wantsFolder = mode === 'folder';
  const opened = dialog({ title: title ?? t(wantsFolder ? 'chooser.folder' : 'chooser.files'), wide: true, body: picker.node,
    actions: [{ label: t('ui.cancel'), run: () => null },
      { label: t(wantsFolder ? 'chooser.take_folder' : 'chooser.take'), kind: 'primary', run: () => picker.result() }],
    onopen: (node) => {
      picker.take = (entries) => node.closeWith(entries);
    } });
  picker.show(start ?? lastFolder ?? session.home);
  return opened;
}

class Picker {
  constructor(options) {
    Object.assign(this, options);
    this.chosen = new Set();
    this.active = -1;
    this.entries = [];
    this.typedText = '';
    this.crumbs = h('nav.crumbs', { 'aria-label': t('chooser.path') });
    this.list = h('div.entries', { role: 'listbox', tabindex: '0', 'aria-label': t('chooser.entries'), 'data-first': true,
      'aria-multiselectable': String(this.multiple), onkeydown: (event) => this.key(event) });
    this.list.id = freshId('entries');
    this.fault = h('div');
    this.status = h('span.muted.small', { 'aria-live': 'polite' });
    this.hidden = check(t('chooser.hidden'), false, () => this.show(this.path));
    this.filter = textInput('', { type: 'search', placeholder: t('chooser.filter'), 'aria-label': t('chooser.filter'),
      oninput: () => this.draw() });
    const place = textInput('', { 'aria-label': t('chooser.go'), placeholder: t('chooser.go'), 'data-go': true });
    const places = h('select.select', { 'aria-label': t('chooser.places'), onchange: () => this.show(places.value) });
    get('/api/files/places').then(({ places: found }) => fill(places, h('option', { value: '', disabled: true, selected: true }, t('chooser.places')),
      found.map((entry) => h('option', { value: entry.path }, entry.name)))).catch(() => { places.hidden = true; });
    place.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.preventDefault();
      this.show(typed(place.value.trim())).then(() => {
        if (this.fault.firstChild) return;
        place.value = '';
        this.list.focus();
      });
    });
    this.up = iconButton(t('chooser.up'), 'up', () => this.parent && this.show(this.parent));
    this.node = h('div.stack.tight',
      h('div.grid-2', places, place),
      h('div.row.nowrap', this.up, h('div.grow', this.crumbs)),
      this.filter, this.list, this.fault,
      h('div.row.apart', this.status, h('div.row', this.hidden, button(t('chooser.new_folder'), () => this.makeFolder(), { kind: 'quiet.small', name: 'plus' }))));
  }

  async show(path) {
    this.list.setAttribute('aria-busy', 'true');
    try {
      const answer = await get('/api/files', { path, hidden: this.hidden.input.checked ? 1 : undefined });
      Object.assign(this, { path: answer.path, parent: answer.parent, all: answer.entries, isTruncated: answer.is_truncated });
      lastFolder = answer.path;
    } catch (error) {
      if (this.path === undefined && path !== session.home) return this.show(session.home);
      this.fault.replaceChildren(errorNote(error));
      return null;
    } finally {
      this.list.removeAttribute('aria-busy');
    }
    this.list.dataset.path = this.path;
    this.fault.replaceChildren();
    this.chosen.clear();
    this.filter.value = '';
    this.up.disabled = !this.parent;
    fill(this.crumbs, crumbs(this.path).map((crumb, index) => [index > 1 ? h('span.muted', { 'aria-hidden': 'true' }, '/') : null,
      h('button', { type: 'button', onclick: () => this.show(crumb.path) }, crumb.name)]));
    this.draw();
    return null;
  }

  draw() {
    const wanted = this.filter.value.toLowerCase();
    this.entries = this.all.filter((entry) => entry.name.toLowerCase().includes(wanted) &&
      (isFolder(entry) || (this.mode === 'files' && isFile(entry) && this.matches(entry))));
    this.active = this.entries.length ? 0 : -1;
    this.drawn = 0;
    this.list.replaceChildren();
    this.list.scrollTop = 0;
    if (!this.entries.length) this.list.append(h('p.item.muted', t(wanted ? 'chooser.none_match' : 'chooser.empty')));
    this.list.onscroll = () => {
      if (this.list.scrollTop + this.list.clientHeight * 3 > this.list.scrollHeight) this.drawMore();
    };
    this.drawMore();
    this.mark();
  }

  drawMore() {
    const more = this.entries.slice(this.drawn, this.drawn + 300);
    for (const entry of more) this.list.append(this.row(entry, this.drawn++));
  }

  row(entry, index) {
    const node = h(`div.entry${isFolder(entry) ? '.folder' : ''}`, { role: 'option', id: `${this.list.id}-${index}`,
      'aria-selected': 'false', onclick: (event) => this.click(index, event), ondblclick: () => this.enter(index) },
    icon(isFolder(entry) ? 'folder' : entry.is_container ? 'lock' : 'file'),
    h('span.grow.ellipsis', { title: entry.name }, entry.name),
    isFolder(entry) ? null : h('span.muted.small', { title: dateTime(entry.modified) }, bytes(entry.size)));
    return node;
  }

  mark() {
    [...this.list.children].forEach((node, index) => {
      if (!node.classList.contains('entry')) return;
      node.classList.toggle('active', index === this.active);
      node.setAttribute('aria-selected', String(this.chosen.has(index)));
    });
    if (this.active >= 0) this.list.setAttribute('aria-activedescendant', `${this.list.id}-${this.active}`);
    const text = this.isTruncated ? t('chooser.truncated', { n: this.all.length }) : '';
    this.status.textContent = this.mode === 'folder' ? shown(this.path)
      : this.chosen.size ? t('chooser.chosen', { n: this.chosen.size }) : text || t('chooser.count', { n: this.entries.length });
  }

  canChoose(index) {
    const entry = this.entries[index];
    return entry && (this.mode === 'folder' || isFile(entry) || this.folders);
  }

  click(index, event) {
    this.active = index;
    if (this.multiple && event.shiftKey && this.anchor !== undefined) {
      const [from, to] = [Math.min(index, this.anchor), Math.max(index, this.anchor)];
      for (let at = from; at <= to; at++) if (this.canChoose(at)) this.chosen.add(at);
    } else {
      this.toggle(index, this.multiple);
    }
    this.anchor = index;
    this.mark();
  }

  toggle(index, keepOthers) {
    if (!this.canChoose(index)) return;
    const had = this.chosen.has(index);
    if (!keepOthers) this.chosen.clear();
    if (had) this.chosen.delete(index);
    else this.chosen.add(index);
  }

  enter(index) {
    const entry = this.entries[index];
    if (!entry) return;
    if (isFolder(entry)) this.show(entry.path);
    else if (this.canChoose(index)) this.take([entry]);
  }

  move(to) {
    if (!this.entries.length) return;
    this.active = Math.max(0, Math.min(this.entries.length - 1, to));
    while (this.drawn <= this.active) this.drawMore();
    this.mark();
    this.list.children[this.active].scrollIntoView({ block: 'nearest' });
  }

  key(event) {
    const page = 8;
    const steps = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, Home: 0, End: Infinity,
      PageDown: this.active + page, PageUp: this.active - page };
    if (event.key in steps) this.move(steps[event.key]);
    else if (event.key === 'ArrowLeft' || event.key === 'Backspace') {
      if (this.parent) this.show(this.parent);
    } else if (event.key === 'ArrowRight') {
      if (isFolder(this.entries[this.active] ?? {})) this.enter(this.active);
    } else if (event.key === 'Enter') {
      if (this.chosen.size && !isFolder(this.entries[this.active])) this.take([...this.chosen].map((index) => this.entries[index]));
      else this.enter(this.active);
    } else if (event.key === ' ') {
      this.toggle(this.active, this.multiple);
      this.mark();
    } else if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) this.typeAhead(event);
    else return;
    event.preventDefault();
  }

  typeAhead(event) {
    if (event.timeStamp - (this.typedAt ?? 0) > 800) this.typedText = '';
    this.typedAt = event.timeStamp;
    this.typedText += event.key.toLowerCase();
    const index = this.entries.findIndex((entry) => entry.name.toLowerCase().startsWith(this.typedText));
    if (index >= 0) this.move(index);
  }

  async makeFolder() {
    const name = textInput('', { 'data-first': true });
    const made = await dialog({ title: t('chooser.new_folder'), form: true, body: field(t('chooser.folder_name'), name), actions: [
      { label: t('ui.cancel'), run: () => null },
      { label: t('chooser.make'), kind: 'primary', run: () => post('/api/files/folder', { path: this.path, name: name.value }) }] });
    if (made) this.show(made.path);
    this.list.focus();
  }

  result() {
    if (this.chosen.size) return [...this.chosen].sort((a, b) => a - b).map((index) => this.entries[index]);
    if (this.mode === 'folder') return [{ path: this.path, name: shown(this.path), kind: 'folder' }];
    this.status.textContent = t('chooser.choose_first');
    this.list.focus();
    return false;
  }
}

// A field with a path and a button that opens the dialog.
export function pathField(label, { mode = 'folder', hint, value = '', title, matches, onchange } = {}) {
  const input = textInput(shown(value));
  const node = field(label, input, { hint, group: h('div.input-group', input, button(t('chooser.browse'), async () => {
    const found = await choose({ mode, title: title ?? label, matches });
    if (!found) return;
    node.set(found[0].path);
    onchange?.(found[0].path);
  })) });
  // The exact path text, if it came from the server; otherwise what was typed.
  let exact = value;
  input.addEventListener('input', () => { exact = null; });
  input.addEventListener('change', () => onchange?.(node.path()));
  node.path = () => (exact !== null && exact !== '' ? exact : typed(input.value.trim()));
  node.set = (path) => {
    exact = path;
    input.value = shown(path);
    node.fail('');
  };
  return node;
}
