export { count } from './units';
