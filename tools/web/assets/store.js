// SPDX-License-Identifier: Apache-2.0
// What the server says, polled while a page shows it. State on the page comes from here alone: an
// action only asks for a fresh look.
import { get, post } from './api.js';

class Store {
  constructor(load, intervalOf) {
    Object.assign(this, { load, intervalOf, listeners: new Set(), value: null, error: null, timer: 0 });
  }

  // Calls listener(value, error) now, if there is a value, and at each answer. Returns what ends it.
  subscribe(listener) {
    this.listeners.add(listener);
    if (this.value || this.error) listener(this.value, this.error);
    this.refresh();
    return () => {
      this.listeners.delete(listener);
    };
  }

  async refresh() {
    clearTimeout(this.timer);
    const look = this.look = (this.look ?? 0) + 1;
    try {
      const value = await this.load();
      if (look !== this.look) return;
      this.value = value;
      this.error = null;
    } catch (error) {
      if (look !== this.look) return;
      this.error = error;
    }
    for (const listener of [...this.listeners]) listener(this.value, this.error);
    clearTimeout(this.timer);
    if (!this.listeners.size || this.error?.status === 401) return;
    const wait = document.hidden ? 15000 : this.intervalOf(this.value ?? []);
    this.timer = setTimeout(() => this.refresh(), wait);
  }
}

// A step that only steers another job; its end is seen there.
export const isStep = (job) => /_(pause|resume|stop)$/.test(job.kind);
export const isActive = (job) => job.state === 'running' || job.state === 'queued';
const isMoving = (part) => Boolean(part) && /running/.test(part.rotation ?? part.state ?? '');

export const jobs = new Store(async () => (await get('/api/jobs')).jobs,
  (list) => (list.some(isActive) ? 1000 : 5000));
export const volumes = new Store(async () => (await get('/api/volumes')).volumes,
  (list) => (list.some((volume) => isMoving(volume.rotation) || isMoving(volume.scrub)) ? 1000 : 3000));

document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  for (const store of [jobs, volumes]) if (store.listeners.size) store.refresh();
});

let engineAnswer = null;
export async function engine() {
  engineAnswer ??= await get('/api/engine');
  return engineAnswer;
}

// Starts an action. Returns its job, or the answer if there is none.
export async function start(path, body) {
  const answer = await post(path, body);
  jobs.refresh();
  return answer.job ?? answer;
}

// Jobs whose end is shown where they were started.
export const awaited = new Set();

// Resolves with a job once it has ended, or once a daemon goes on with it.
export function ended(id) {
  awaited.add(id);
  return whenEnded(id);
}

// The same for a job whose end is shown in the list of jobs.
export function whenEnded(id) {
  return new Promise((resolve) => {
    const stop = jobs.subscribe((list) => {
      const job = list?.find((entry) => entry.id === id);
      if (!job || (isActive(job) && !job.is_handed_over)) return;
      queueMicrotask(() => stop());
      volumes.refresh();
      resolve(job);
    });
  });
}
