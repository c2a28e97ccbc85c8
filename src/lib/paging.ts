const pageLength = 500

/** All of a list that is kept by name and read in pages. For whoever has the time: it comes back whole. */
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
