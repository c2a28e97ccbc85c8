import type { Answer, Exchange } from '../exchange.ts'

let document: Promise<Uint8Array> | undefined

/** GET /api/2023-12-28/openapi.json - made once, when somebody asks for the first time: no start has to wait for it. */
export async function getOpenApi({ app }: Exchange): Promise<Answer> {
  document ??= serialise(app.http.version)
  const bytes = await document
  return { status: 200, headers: { 'content-type': 'application/json' }, body: bytes, lengthBytes: bytes.length }
}

async function serialise(version: string): Promise<Uint8Array> {
  const { buildDocument } = await import('./document.ts')
  return new TextEncoder().encode(JSON.stringify(buildDocument(version)))
}
