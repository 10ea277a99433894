// SPDX-License-Identifier: Apache-2.0
// Path text, as tools/web/API.md defines it: bytes that cannot be shown, and %, are %XX.

const replacement = '\uFFFD';

// For people. What cannot be shown becomes a replacement character.
export const shown = (path) => (path ?? '').replace(/%([0-9A-Fa-f]{2})/g,
  (_, hex) => (hex === '25' ? '%' : replacement));

// Path text of what a person typed.
export const typed = (text) => text.replace(/%/g, '%25');

export const nameOf = (path) => shown((path ?? '').replace(/\/+$/, '').split('/').pop()) || '/';
export const parentOf = (path) => (path ?? '').replace(/\/+$/, '').replace(/\/[^/]*$/, '') || '/';
export const join = (folder, name) => `${(folder ?? '').replace(/\/+$/, '')}/${name}`;

// The folders from the root to a path: [{path, name}].
export function crumbs(path) {
  const parts = path.split('/').filter(Boolean);
  return [{ path: '/', name: '/' },
    ...parts.map((part, index) => ({ path: `/${parts.slice(0, index + 1).join('/')}`, name: shown(part) }))];
}

// A word for sh. Words with bytes that cannot be shown are written as $'…' of bash.
export function quote(path) {
  const text = path ?? '';
  if (/^[A-Za-z0-9_@+=:,./~-]+$/.test(text)) return text;
  if (/%(?!25)[0-9A-Fa-f]{2}/.test(text)) {
    const escaped = text.replace(/['\\]/g, '\\$&').replace(/%([0-9A-Fa-f]{2})/g,
      (_, hex) => (hex === '25' ? '%' : `\\x${hex}`));
    return `$'${escaped}'`;
  }
  return `'${shown(text).replace(/'/g, "'\\''")}'`;
}
