import { describe, expect, test } from 'bun:test'
import { settingsTable } from '../../../src/app/settings.ts'

describe('the table of settings', () => {
  const rows = Object.values(settingsTable)

  test.each(rows)('$name has a default that its own check takes', ({ name, kind }) => {
    if (kind.fallback === undefined || kind.fallbackText === '[]') return
    expect([name, kind.parse(kind.fallbackText)?.value]).toEqual([name, kind.fallback] as never)
  })

  test.each(rows)('$name says what it means in a sentence', ({ meaning, name }) => {
    expect(meaning).toMatch(/^[A-Z`].*\.$/)
    expect(name).toMatch(/^[a-z_]+(\.[a-z_]+|\.s3\.[a-z_]+)?$/)
  })

  test('marks exactly the credentials as secret', () => {
    const secrets = rows.filter(({ kind }) => kind.isSecret).map(({ name }) => name)
    // An address of a database may hold a password.
    expect(secrets).toEqual([
      'metadata.url',
      'storage.s3.secret_access_key',
      'storage.s3.session_token',
      'storage.s3.credentials_token',
      'identity.admin_api_key',
      'identity.admin_password',
    ])
    // What is a number or a duration may be about keys without being one.
    const texts = rows.filter(({ kind: { fallback } }) => fallback === undefined || typeof fallback === 'string')
    // Nor is the name of a key, or of a file.
    const named = texts
      .map(({ name }) => name)
      .filter((name) => /key|password|secret|token/.test(name) && !/_id$|_file$/.test(name))
    expect(named).toEqual(secrets.filter((name) => name !== 'metadata.url'))
  })
})
