const pageLength = 500

/** Reads all pages of a list that is sorted by name. Only for lists that fit into memory. */
export async function readAllPages<T extends { readonly name: string }>(
  readPage: (after: string | undefined, limit: number) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const all: T[] = []
  for (;;) {
    const page = await readPage(all.at(-1)?.name, pageLength)
    all.push(...page)
    if (page.length < pageLength) return all
  }
}
