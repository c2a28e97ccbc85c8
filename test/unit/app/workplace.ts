// A folder with empty data, and `berth` commands that run in it and in this process.
import { expect } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { SqlMetadataStore } from '../../../src/adapters/metadata-sql/sql-metadata-store.ts'
import { SqliteDatabase } from '../../../src/adapters/metadata-sql/sqlite-database.ts'
import type { CommandRun } from '../../support/server/berth-command.ts'
import { runBerthHereWith } from '../../support/server/berth-here.ts'

/** Makes a data folder as a first start leaves it, but for its first user. */
export async function layEmptyData(dataDir: string): Promise<void> {
  mkdirSync(dataDir, { recursive: true })
  await (await SqlMetadataStore.open(new SqliteDatabase(join(dataDir, 'metadata.sqlite')))).close()
}

/** The words of a command, and then arguments that contain spaces. */
export type Words = readonly [words: string, ...more: string[]]

export function toArguments([words, ...more]: Words): string[] {
  return [...words.split(' '), ...more]
}

export async function openWorkplace(folder: string, environment: Readonly<Record<string, string>> = {}) {
  await layEmptyData(join(folder, 'data'))
  /** With this on standard input. */
  const runWith = (input: string, ...words: Words) => runBerthHereWith(input, toArguments(words), environment, folder)
  const run = (...words: Words) => runWith('', ...words)
  const readJson = async <T>(words: string): Promise<T> => {
    const { exitCode, stdout, stderr } = await run(`${words} --json`)
    expect([exitCode, stderr]).toEqual([0, ''])
    return JSON.parse(stdout)
  }
  return { folder, run, runWith, readJson }
}

export function succeeded(stdout: string, stderr = ''): CommandRun {
  return { exitCode: 0, stdout, stderr }
}

export function failed(message: string): CommandRun {
  return { exitCode: 1, stdout: '', stderr: `berth: ${message}\n` }
}

/** A command that was not understood ends with code 2 and one line, which contains these words. */
export function expectMisuse({ exitCode, stdout, stderr }: CommandRun, words: string): void {
  expect([exitCode, stdout]).toEqual([2, ''])
  expect(stderr).toMatch(/^berth: [^\p{Cc}]*\n$/u)
  expect(stderr).toContain(words)
}
