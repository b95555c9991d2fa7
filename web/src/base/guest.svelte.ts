// The guest link by which this tab reads a project or a run.
//
// Its secret is in the session storage of the tab: never in an address that a request or the history has, and gone with
// the tab. It is sent from the pages of guests only, so that a user who is signed in stays that on all others.

import { currentPath, storageKey } from './address';
import type { ApiError } from './api';

const KEY = storageKey('runvitals.link');
/** Where guests read. As `SHARED` of the router, which loads requests and so cannot be loaded by them. */
const PAGES = /^\/-\/(shared(\/|$)|embed\/)/;

class Guest {
  /** Empty: there is no link. */
  secret = $state('');
  /** Why the link works no longer; empty while it does. */
  problem = $state('');

  /** The link is to a single run, not to its project. */
  ofRun = $state(false);

  /** Whether requests are those of a guest. */
  active(): boolean {
    return PAGES.test(currentPath());
  }

  /** Restore the link after the page was reloaded. */
  restore(): void {
    this.secret ||= sessionStorage.getItem(KEY) ?? '';
  }

  /** Use another link from now on. */
  open(secret: string): void {
    sessionStorage.setItem(KEY, secret);
    this.secret = secret;
    this.problem = '';
  }

  /** The headers of a request. */
  headers(): Record<string, string> {
    return this.active() && this.secret ? { 'x-runvitals-link': this.secret } : {};
  }

  /** Note that an error means the end of the link. Returns the error. */
  checked(error: ApiError): ApiError {
    if (error.status === 401 || error.status === 410) this.problem = error.message;
    return error;
  }
}

export const guest = new Guest();
