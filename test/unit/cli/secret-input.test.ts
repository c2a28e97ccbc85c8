import { describe, expect, test } from 'bun:test'
import { askPassword, readPassword, type SecretInput } from '../../../src/cli/secret-input.ts'
import { errorOf } from '../../support/basics/outcomes.ts'

const word = 'correct horse'

async function* chunksOf(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<string | Uint8Array> {
  yield* chunks
}

function piped(...chunks: readonly (string | Uint8Array)[]): SecretInput {
  return chunksOf(chunks)
}

/** A terminal at which these keys are pressed; it remembers what was done to it. */
function typedAt(...chunks: readonly (string | Uint8Array)[]) {
  const events: string[] = []
  const input: SecretInput = {
    isTTY: true,
    setRawMode: (isRaw) => events.push(isRaw ? 'echo off' : 'echo on'),
    [Symbol.asyncIterator]: () => chunksOf(chunks),
  }
  return { events, ask: () => askPassword('alice', input, (text) => events.push(text)) }
}

describe('a password at a terminal', () => {
  test('is asked for twice, and what is typed is shown nowhere', async () => {
    const { ask, events } = typedAt(`${word}\r`, `${word}\r`)
    expect(await ask()).toBe(word)
    expect(events).toEqual(['echo off', 'Password for alice: ', '\n', 'Repeat the password: ', '\n', 'echo on'])
  })

  const [unicode, key] = ['zwölf Zeichen 🔑', new TextEncoder().encode('🔑\r')]
  const ways: readonly (readonly [string, string, readonly (string | Uint8Array)[]])[] = [
    ['key by key', word, [...`${word}\r${word}\r`]],
    ['all at once, as it is pasted', word, [`${word}\r\n${word}\r\n`]],
    ['with line feeds', word, [`${word}\n`, `${word}\n`]],
    ['with backspaces of both kinds', word, [`${word}xy\u007f\b\r`, `x\u007f${word}\r`]],
    ['with more backspaces than keys', word, [`\u007f\u007f${word}\r`, `${word}\r`]],
    ['after the line was erased', word, [`wrong\u0015${word}\r`, `${word}\r`]],
    ['with arrows and function keys between', word, [`\u001b[A${word}\u001b[15~\u001bOP\r`, `\u001b[1;5C${word}\r`]],
    ['with control keys that mean nothing here', word, [`\t\u0001${word}\u0000\r`, `${word}\r`]],
    ['with an end of input in the middle of the line', word, [`correct \u0004horse\r`, `${word}\r`]],
    [
      'with a character of which half arrives later',
      unicode,
      ['zwölf Zeichen ', key.slice(0, 2), key.slice(2), `${unicode}\r`],
    ],
    ['with a backspace for a character of several units', word, [`${word}🔑\b\r`, `${word}\r`]],
  ]
  test.each(ways)('can be typed %s', async (_, password, chunks) => {
    expect(await typedAt(...chunks).ask()).toBe(password)
  })

  const refused: readonly (readonly [string, string, readonly string[]])[] = [
    ['two that differ', 'the two passwords are different', [`${word}\r`, `${word}!\r`]],
    ['one that is too short, before it is asked for again', 'the user or the key is not valid', ['short\r']],
    ['an interrupt', 'interrupted', [`${word}\u0003`]],
    ['an interrupt at the second question', 'interrupted', [`${word}\r`, '\u0003']],
    ['an end of input at the start of the line', 'interrupted', ['\u0004']],
    ['a terminal that goes away', 'the terminal was closed', [word]],
  ]
  test.each(refused)('%s ends in a refusal, with the echo on again', async (_, words, chunks) => {
    const { ask, events } = typedAt(...chunks)
    expect(String(await errorOf(ask()))).toContain(words)
    expect(events[0]).toBe('echo off')
    expect(events.at(-1)).toBe('echo on')
    expect(events.join('')).not.toContain(word)
  })
})

describe('a password on standard input', () => {
  test.each([
    ['without an end of line', [word]],
    ['with a line feed', [`${word}\n`]],
    ['with carriage return and line feed', [`${word}\r\n`]],
    ['in pieces', [...`${word}\n`]],
    ['behind a byte order mark', [`\ufeff${word}\n`]],
  ])('%s is the same password', async (_, chunks) => {
    expect(await readPassword('alice', piped(...chunks))).toBe(word)
  })

  test('keeps its spaces', async () => {
    expect(await readPassword('alice', piped(` ${word} \n`))).toBe(` ${word} `)
  })

  const refused: readonly (readonly [string, string, string | Uint8Array])[] = [
    ['two lines', 'one line', `${word}\n${word}\n`],
    ['two line ends', 'one line', `${word}\n\n`],
    ['bytes that are no text', 'one line', Uint8Array.from([...new TextEncoder().encode(word), 0xff])],
    ['nothing', 'the user or the key is not valid', ''],
    ['11 characters', 'the user or the key is not valid', 'x'.repeat(11)],
    ['1,025 characters', 'the user or the key is not valid', 'x'.repeat(1_025)],
  ]
  test.each(refused)('%s is refused', async (_, words, input) => {
    const error = String(await errorOf(readPassword('alice', piped(input))))
    expect(error).toContain(words)
    expect(error).not.toContain(word)
  })

  test('that never ends is read no further than a line can be long', async () => {
    let given = 0
    // It ends after 10 MB, so that a reader without a limit fails the test.
    async function* endless(): AsyncGenerator<string> {
      for (; given < 10_000; given += 1) yield 'x'.repeat(1_000)
    }
    await errorOf(readPassword('alice', endless()))
    expect(given).toBeLessThan(100)
  })
})
