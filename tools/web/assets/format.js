// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them. Sizes are binary, since the commands print KiB and MiB as well.
import { currentLanguage, t } from './i18n.js';

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
export const dash = '–';
const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

export function number(value, digits = 0) {
  if (!isNumber(value)) return dash;
  return value.toLocaleString(currentLanguage(), { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function bytes(value) {
  if (!isNumber(value)) return dash;
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return `${number(Math.sign(value) * size, digits)} ${units[unit]}`;
}

export const rate = (value) => (isNumber(value) ? `${bytes(value)}/s` : dash);
export const percent = (share, digits = 0) => (isNumber(share) ? `${number(share * 100, digits)} %` : dash);
export const ratio = (value) => (isNumber(value) ? `${number(value, 2)} ×` : dash);

export function duration(seconds) {
  if (!isNumber(seconds)) return dash;
  if (seconds < 1e-3) return microseconds(seconds * 1e6);
  if (seconds < 1) return `${number(seconds * 1000, seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 60) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return t('format.days', { n: Math.floor(hours / 24) });
}

export function microseconds(value) {
  if (!isNumber(value)) return dash;
  if (value < 1000) return `${number(value, value < 10 ? 1 : 0)} µs`;
  return duration(value / 1e6);
}

export const dateTime = (seconds) => (isNumber(seconds)
  ? new Date(seconds * 1000).toLocaleString(currentLanguage(), { dateStyle: 'medium', timeStyle: 'short' }) : dash);
export const clock = (seconds) => (isNumber(seconds)
  ? new Date(seconds * 1000).toLocaleTimeString(currentLanguage(), { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }) : dash);

// Fingerprints in groups of four digits, as they are read aloud.
export const fingerprint = (hex, digits = 64) => (hex ?? '').slice(0, digits).replace(/(.{4})(?=.)/g, '$1 ');

// A sentence of the server, which begins with a small letter. Names and paths stay as they are.
export const sentence = (text) => (/^[a-z]+[,:]?( |$)/.test(text ?? '') ? text[0].toUpperCase() + text.slice(1) : text ?? '');
