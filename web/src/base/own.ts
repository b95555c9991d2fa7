// Looking up names that users chose.

/** The value under a name; undefined for names such as `constructor`, which every object inherits. */
export const own = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined => (Object.hasOwn(record, name) ? record[name] : undefined);
