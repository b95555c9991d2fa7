import { withOwnAddresses } from './ownAddresses.js';

export default {
  compilerOptions: { runes: true },
  preprocess: { name: 'own-addresses', markup: ({ content, filename }) => ({ code: withOwnAddresses(content, filename) }) },
};
