// The entry of the page: it requests the data of the first view, and the code of the page at the same time. It is loaded
// asynchronously, so that it waits neither for the styles nor for the rest of the document.

import { currentPath } from './base/address';
import { startEarly } from './base/early';
import { pageOf } from './pages';

startEarly();
pageOf(currentPath())?.().catch(() => undefined); // the page says so when it shows it
import('./app').catch(() => {
  document.body.textContent = 'The page could not be loaded: the server does not respond, or was updated. Reload the page.';
});
