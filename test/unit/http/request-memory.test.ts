import { expect, test } from 'bun:test'
import { bytesInMemory } from '../../../src/http/request-memory.ts'

test.each([
  ['a text, in bytes and not in characters', { body: 'é€😀' }, 2 + 3 + 4],
  ['bytes', { body: new Uint8Array(7) }, 7],
  ['a stream that says what it keeps', { body: 'x', memoryBytes: 9 }, 9],
  ['no body', {}, 0],
] as const)('an answer with %s counts what it keeps in memory', (_what, answer, bytes) => {
  expect(bytesInMemory({ status: 200, headers: {}, ...answer })).toBe(bytes)
})
