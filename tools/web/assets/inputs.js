// SPDX-License-Identifier: Apache-2.0
// The list of chosen files. Files of the dialog keep their paths. A dropped file has none, since a
// browser hides it, so the drop is uploaded to the server and the list says so.
import { remove, upload } from './api.js';
import { choose } from './chooser.js';
import { fill, h, setPart } from './dom.js';
import { bytes } from './format.js';
import { t } from './i18n.js';
import { icon } from './icons.js';
import { parentOf, shown } from './paths.js';
import { announce, button, iconButton, toast } from './ui.js';

export class Inputs {
  constructor() {
    this.items = [];
    this.listeners = new Set();
  }

  changed() {
    for (const listener of [...this.listeners]) listener();
  }

  add(entries) {
    const have = new Set(this.items.map((item) => item.path).filter(Boolean));
    for (const entry of entries) {
      if (!have.has(entry.path)) this.items.push({ path: entry.path, name: entry.name, size: entry.size, kind: entry.kind });
    }
    this.changed();
  }

  async addDropped(file) {
    const abort = new AbortController();
    const item = { name: file.name, size: file.size, share: 0, abort };
    this.items.push(item);
    this.changed();
    try {
      const done = await upload(file, (share) => {
        item.share = share;
        item.onprogress?.();
      }, abort.signal);
      Object.assign(item, { upload: done.id, name: done.name, size: done.size });
      announce(t('inputs.uploaded_one', { name: item.name }));
    } catch (error) {
      this.items = this.items.filter((other) => other !== item);
      if (error.code !== 'cancelled') toast(t('inputs.upload_failed', { name: file.name, what: error.what }), 'bad');
    }
    this.changed();
  }

  remove(item) {
    item.abort?.abort();
    if (item.upload) remove(`/api/uploads/${item.upload}`).catch(() => {});
    this.items = this.items.filter((other) => other !== item);
    this.changed();
  }

  // Empties the list, which a job has now, and returns what was in it.
  take() {
    const taken = this.items;
    this.items = [];
    this.changed();
    return taken;
  }

  // After the job: uploaded copies that nobody needs any more, and what failed.
  drop(items) {
    for (const item of items) if (item.upload) remove(`/api/uploads/${item.upload}`).catch(() => {});
  }

  giveBack(items) {
    const have = new Set(this.items.map((item) => item.path ?? item.upload));
    this.items = [...items.filter((item) => !have.has(item.path ?? item.upload)), ...this.items];
    this.changed();
  }

  get isUploading() { return this.items.some((item) => !item.path && !item.upload); }
  get hasUploads() { return this.items.some((item) => !item.path); }
  get hasFolders() { return this.items.some((item) => /folder/.test(item.kind ?? '')); }
  get body() { return this.items.map((item) => (item.path ? { path: item.path } : { upload: item.upload })); }
  get forCommand() { return this.items.length ? this.items : [{ name: 'FILE' }]; }
}

function row(inputs, item) {
  const uploading = !item.path && !item.upload;
  const bar = h('span');
  const node = h('li.item.tight', icon(/folder/.test(item.kind ?? '') ? 'folder' : 'file'),
    h('div.grow', h('div.wrap-anywhere', item.name),
      h('div.muted.small.wrap-anywhere', item.path ? shown(parentOf(item.path)) : t(uploading ? 'inputs.uploading' : 'inputs.is_copy')),
      uploading ? h('div.bar', { role: 'progressbar', 'aria-label': t('inputs.uploading') }, bar) : null),
    item.size === undefined || /folder/.test(item.kind ?? '') ? null : h('span.muted.small', bytes(item.size)),
    iconButton(t('inputs.remove', { name: item.name }), 'close', () => inputs.remove(item), true));
  item.onprogress = () => setPart(bar, item.share);
  item.onprogress();
  return node;
}

// Returns {node, stop}. options: {multiple, folders, matches, text}.
export function inputsField(inputs, { multiple = true, folders = true, matches, text = t('inputs.drop') } = {}) {
  const list = h('ul.divided', { 'aria-label': t('inputs.list') });
  const pick = async () => {
    const found = await choose({ multiple, folders, matches });
    if (!found) return;
    if (!multiple) inputs.items = [];
    inputs.add(found);
  };
  const drop = h('div.drop', h('span', text), button(t('inputs.choose'), pick, { name: 'folder' }));
  const draw = () => fill(list, inputs.items.map((item) => row(inputs, item)));
  drop.addEventListener('dragover', (event) => {
    if (![...event.dataTransfer.types].includes('Files')) return;
    event.preventDefault();
    drop.classList.add('over');
  });
  drop.addEventListener('dragleave', () => drop.classList.remove('over'));
  drop.addEventListener('drop', (event) => {
    event.preventDefault();
    drop.classList.remove('over');
    const entries = [...event.dataTransfer.items].map((item) => ({ file: item.getAsFile(), isFolder: item.webkitGetAsEntry?.()?.isDirectory }));
    if (entries.some((entry) => entry.isFolder)) toast(t('inputs.no_folders'), 'bad');
    const files = entries.filter((entry) => entry.file && !entry.isFolder).map((entry) => entry.file);
    if (!multiple) inputs.items = [];
    for (const file of multiple ? files : files.slice(0, 1)) inputs.addDropped(file);
  });
  const begin = () => {
    inputs.listeners.add(draw);
    draw();
  };
  begin();
  return { node: h('div.stack.tight', list, drop), drop, begin, stop: () => inputs.listeners.delete(draw) };
}
