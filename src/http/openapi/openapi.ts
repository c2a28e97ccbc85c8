import type { Answer, Exchange } from '../exchange.ts'

/** By the address of the identity service. */
const documents = new Map<string | undefined, Promise<Uint8Array>>()

/** GET /api/2023-12-28/openapi.json - made once, when somebody asks for the first time: no start has to wait for it. */
export async function getOpenApi({ app }: Exchange): Promise<Answer> {
  const { version, authUrl } = app.http
  const document = documents.get(authUrl) ?? serialise(version, authUrl)
  documents.set(authUrl, document)
  const bytes = await document
  return { status: 200, headers: { 'content-type': 'application/json' }, body: bytes, lengthBytes: bytes.length }
}

async function serialise(version: string, authUrl: string | undefined): Promise<Uint8Array> {
  const { buildDocument } = await import('./document.ts')
  return new TextEncoder().encode(JSON.stringify(buildDocument(version, authUrl)))
}
