// Table rows that are redrawn only when their own data has changed.

import { Component, type ComponentChildren, type JSX } from "preact";
import { useState } from "preact/hooks";

interface RowProps<T> {
  readonly item: T;
  readonly draw: (item: T) => ComponentChildren;
}

function isSame(a: object, b: object): boolean {
  const left = Object.entries(a);
  const right = new Map(Object.entries(b));
  return (
    left.length === right.size && left.every(([name, value]) => isDeepEqual(value, right.get(name)))
  );
}

/** Deep comparison: every message creates new objects even if nothing changed. */
function isDeepEqual(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  return isSame(a, b);
}

class Row<T extends object> extends Component<RowProps<T>> {
  override shouldComponentUpdate(next: RowProps<T>): boolean {
    return !isSame(next.item, this.props.item);
  }

  override render(): ComponentChildren {
    return this.props.draw(this.props.item);
  }
}

interface RowsProps<T> {
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string;
  /** Renders one `<tr>` or `<li>`; must depend only on the item. */
  readonly draw: (item: T) => ComponentChildren;
}

export function Rows<T extends object>({ items, keyOf, draw }: RowsProps<T>): JSX.Element {
  return (
    <>
      {items.map((item) => (
        <Row<T> key={keyOf(item)} item={item} draw={draw} />
      ))}
    </>
  );
}

export interface Column {
  readonly name: string;
  readonly isNumber?: boolean;
  /** Omitted on phones. */
  readonly isExtra?: boolean;
}

interface TableProps {
  /** Title of the table for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column[];
  readonly children: ComponentChildren;
}

export function cellClass({ isNumber = false, isExtra = false }: Omit<Column, "name">): string {
  return `${isNumber ? "number right" : ""}${isExtra ? " extra" : ""}`;
}

/** Scrolls horizontally in its own frame if it is too wide; the page never does. */
export function Table({ caption, columns, children }: TableProps): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keyboards must reach it
    <section class="table" tabIndex={0} aria-label={`${caption}, the table`}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={cellClass(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

interface NumbersProps {
  readonly children: () => ComponentChildren;
}

/** A chart's numbers as a table, rendered only while open. */
export function Numbers({ children }: NumbersProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="numbers" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Numbers as a table</summary>
      {isOpen ? children() : null}
    </details>
  );
}
