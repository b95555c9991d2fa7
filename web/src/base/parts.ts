// Parts of the page that are loaded when they are shown.

import { request } from './address';
import { ApiError, NO_RESPONSE, wasReached } from './api';

/**
 * Loads a part, from a server that responds: a browser that could not load a module once fails all its later
 * imports, until the page is loaded again.
 *
 * @throws ApiError of status 0: the server does not respond; the next attempt may succeed.
 */
export async function loadPart<Part>(load: () => Promise<Part>): Promise<Part> {
  if (!wasReached()) await reach();
  return load();
}

async function reach(): Promise<void> {
  try {
    await request('/healthz', { cache: 'no-store' });
  } catch {
    throw new ApiError(0, NO_RESPONSE);
  }
}
