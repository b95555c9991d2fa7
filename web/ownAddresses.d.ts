export const ATTRIBUTES: readonly string[];
export function withOwnAddresses(content: string, filename: string): string;
