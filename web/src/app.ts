import { mount } from 'svelte';
import App from './App.svelte';
import { markBrokenImages } from './base/brokenImages';
import 'uplot/dist/uPlot.min.css';
import './app.css';

// Parts of the page are named by their content, so a server that was updated has none of those that this page loads.
window.addEventListener('vite:preloadError', ({ payload }) => {
  payload.message = 'A part of the page could not be loaded: the server does not respond, or was updated. Reload the page.';
});

markBrokenImages();

const show = (): unknown => mount(App, { target: document.getElementById('app')! });
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', show);
else show();
