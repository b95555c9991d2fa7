// Changes of the view of the runs table; each goes to the address.

import { here } from '../../../base/route.svelte';
import { columnsOf, usualColumns, usualSort, type Column, type Shown } from './columns';
import { changesFor, limitedWidth, moved, shifted, sortedBy, viewOf, type RunsView, type SortTerm } from './view';

export class ViewEditor {
  #shownList: () => Shown;
  view = $derived(viewOf(here.query));
  /** The order of the list. */
  sort = $derived.by((): readonly SortTerm[] => this.view.sort ?? usualSort(this.#shownList()));
  /** The view with the order of the list. */
  listed = $derived.by((): RunsView => ({ ...this.view, sort: [...this.sort] }));
  /** The column that is being dragged. */
  dragged = $state<string | null>(null);
  /** The width of a column while it is dragged. */
  resized = $state.raw<{ name: string; width: number } | null>(null);
  /** Names of the columns in their order, without the name of the run, which is always first. */
  names = $derived.by((): string[] => this.view.columns ?? usualColumns(this.#shownList()));
  pinned = $derived(this.names.filter((name) => this.view.pinned.includes(name)));
  /** The columns as they are shown: pinned ones first. */
  columns = $derived(columnsOf([...this.pinned, ...this.names.filter((name) => !this.view.pinned.includes(name))]));

  widths = $derived.by((): RunsView['widths'] => (this.resized ? { ...this.view.widths, [this.resized.name]: this.resized.width } : this.view.widths));

  constructor(shownList: () => Shown) {
    this.#shownList = shownList;
  }

  set(changes: Partial<RunsView>): void {
    here.set(changesFor({ ...this.view, ...changes }));
  }

  /** Another view altogether: one that was saved. */
  replace(view: RunsView): void {
    here.push(changesFor(view));
  }

  sortBy(column: Column, add: boolean): void {
    if (column.sort !== null) this.set({ sort: sortedBy(this.sort, column.sort, column.descendingFirst, add) });
  }

  sortOnly(name: string, descending: boolean): void {
    this.set({ sort: [{ name, descending }] });
  }

  toggleGroup(name: string): void {
    const { by } = this.view;
    this.set({ by: by.includes(name) ? by.filter((column) => column !== name) : [...by, name], open: [] });
  }

  toggleOpen(key: string): void {
    const { open } = this.view;
    this.set({ open: open.includes(key) ? open.filter((openKey) => openKey !== key) : [...open, key] });
  }

  togglePin(name: string): void {
    const { pinned } = this.view;
    this.set({ columns: this.names, pinned: pinned.includes(name) ? pinned.filter((column) => column !== name) : [...pinned, name] });
  }

  toggleColumn(name: string): void {
    if (this.names.includes(name)) this.removeColumn(name);
    else this.set({ columns: [...this.names, name] });
  }

  removeColumn(name: string): void {
    const without = (names: readonly string[]): string[] => names.filter((column) => column !== name);
    this.set({ columns: without(this.names), pinned: without(this.view.pinned) });
  }

  /** `width` null: the usual one. */
  resize(name: string, width: number | null): void {
    this.resized = null;
    const { [name]: _, ...others } = this.view.widths;
    this.set({ widths: width === null ? others : { ...others, [name]: limitedWidth(width) } });
  }

  /** Pinned columns move among themselves: their order is part of all columns' order. */
  #movable(name: string): string[] {
    const isPinned = this.pinned.includes(name);
    return this.names.filter((column) => this.pinned.includes(column) === isPinned);
  }

  canShift(name: string, by: -1 | 1): boolean {
    const names = this.#movable(name);
    return names[names.indexOf(name) + by] !== undefined;
  }

  shift(name: string, by: -1 | 1): void {
    this.#order(shifted(this.#movable(name), name, by), name);
  }

  move(name: string, beside: string, after: boolean): void {
    const names = this.#movable(name);
    if (names.includes(beside)) this.#order(moved(names, name, beside, after), name);
  }

  #order(names: readonly string[], name: string): void {
    const isPinned = this.pinned.includes(name);
    const others = this.names.filter((column) => this.pinned.includes(column) !== isPinned);
    this.set({ columns: isPinned ? [...names, ...others] : [...others, ...names] });
  }
}
