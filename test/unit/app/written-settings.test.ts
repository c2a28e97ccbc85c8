// `berth config --output`: the settings in force as a file that gives the same configuration.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../../src/app/config.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerth } from '../../support/server/berth-command.ts'

const newFolder = useTemporaryFolders('written-settings')

const secrets = {
  BERTH_IDENTITY__ADMIN_API_KEY: '#hush-hush-hush-hush-hush',
  BERTH_IDENTITY__ADMIN_PASSWORD: 'hush: 12345 "hush"',
  BERTH_STORAGE__S3__SECRET_ACCESS_KEY: '123456789012345678901234567890hush',
  BERTH_STORAGE__S3__SESSION_TOKEN: '*hush',
}
const environment = {
  ...secrets,
  BERTH_METADATA__URL: 'postgres://berth:hush@db.example.com/berth?sslmode=require&password=hush',
  BERTH_STORAGE__S3__ACCESS_KEY_ID: '0123',
  BERTH_STORAGE__S3__BUCKET: 'true',
  BERTH_DATA_DIR: 'a folder: #1',
  BERTH_SERVER__PORT: '0',
  BERTH_SERVER__IDLE: '90s',
  BERTH_AUTH__TIMEOUT: '1500ms',
  BERTH_GARBAGE__EVERY: '0',
  BERTH_LIMITS__MANIFEST_BYTES: '5000001',
  BERTH_LIMITS__BLOB_BYTES: '3TiB',
  BERTH_IDENTITY__ROLES: 'ops=operate+pull,null=,1=pull',
  BERTH_AUTH__ANONYMOUS_PULL: 'public/*,*/base',
  BERTH_AUTH__ACCOUNT_FIELDS: 'no',
  BERTH_SERVER__TRUSTED_PROXIES: '10.0.0.0/8,::1',
  BERTH_ACCOUNTS__AUTO_ENABLE: 'false',
}

/** What the command prints, as a file. */
async function writtenBy(format: string, ...args: readonly string[]) {
  const { exitCode, stdout, stderr } = await runBerth(['config', '--output', format, ...args], environment)
  const path = join(newFolder(), `berth.${format}`)
  writeFileSync(path, stdout)
  return { exitCode, stdout, stderr, path }
}

test.each(['yaml', 'json'])('%s with the secrets gives the same configuration when it is read', async (format) => {
  const { exitCode, stderr, path } = await writtenBy(format, '--show-secrets')

  expect([exitCode, stderr]).toEqual([0, ''])
  expect(readConfig(path, {})).toEqual(readConfig(undefined, environment))
})

test.each(['yaml', 'json'])('%s without them is a valid file, and names what it leaves out', async (format) => {
  const { exitCode, stdout, stderr, path } = await writtenBy(format)

  expect([exitCode, stdout.includes('hush')]).toEqual([0, false])
  for (const name of [
    ...['identity.admin_api_key', 'identity.admin_password', 'the password of metadata.url'],
    ...['storage.s3.access_key_id', 'storage.s3.secret_access_key', 'storage.s3.session_token'],
  ]) {
    expect(stderr).toContain(name)
  }
  const { BERTH_STORAGE__S3__ACCESS_KEY_ID: _id, ...rest } = environment
  const open = Object.fromEntries(Object.entries(rest).filter(([name]) => !(name in secrets)))
  const url = 'postgres://berth@db.example.com/berth?sslmode=require'
  expect(readConfig(path, {})).toEqual(readConfig(undefined, { ...open, BERTH_METADATA__URL: url }))
})

test('the defaults are written so that they are read again', async () => {
  const { exitCode, stdout } = await runBerth(['config', '--output', 'yaml'])
  const path = join(newFolder(), 'berth.yaml')
  writeFileSync(path, stdout)

  expect(exitCode).toBe(0)
  expect(readConfig(path, {})).toEqual(readConfig(undefined, {}))
})
