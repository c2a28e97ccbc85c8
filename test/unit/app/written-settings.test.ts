// `berth config`: the settings in force, also as a file that gives the same configuration.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../../src/app/config.ts'
import { useTemporaryFolders } from '../../support/basics/temporary-folders.ts'
import { runBerthHere } from '../../support/server/berth-here.ts'
import { toArguments } from './workplace.ts'

const newFolder = useTemporaryFolders('written-settings')

const secrets = {
  BERTH_IDENTITY__ADMIN_API_KEY: '#hush-hush-hush-hush-hush',
  BERTH_IDENTITY__ADMIN_PASSWORD: 'hush: 12345 "hush"',
  BERTH_STORAGE__S3__SECRET_ACCESS_KEY: '123456789012345678901234567890hush',
  BERTH_STORAGE__S3__SESSION_TOKEN: '*hush',
}
const open = {
  BERTH_METADATA__URL: 'postgres://berth@db.example.com/berth?sslmode=require',
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
const environment = {
  ...open,
  ...secrets,
  BERTH_STORAGE__S3__ACCESS_KEY_ID: '0123',
  BERTH_METADATA__URL: 'postgres://berth:hush@db.example.com/berth?sslmode=require&password=hush',
}

test.each(['yaml', 'json'])(
  '%s gives the same configuration, and without secrets names what it omits',
  async (format) => {
    for (const [words, given, expected] of [
      ['--show-secrets', environment, environment],
      ['', environment, open],
      ['', {}, {}],
    ] as const) {
      const folder = newFolder()
      const args = toArguments([`config --output ${format} ${words}`.trim()])
      const { exitCode, stdout, stderr } = await runBerthHere(args, given, folder)
      const path = join(folder, `written.${format}`)
      writeFileSync(path, stdout)

      expect([exitCode, stdout.includes('hush')]).toEqual([0, words !== ''])
      expect(readConfig(path, {})).toEqual(readConfig(undefined, expected))
      if (expected !== open) expect(stderr).toBe('')
      else {
        for (const name of [
          ...['identity.admin_api_key', 'identity.admin_password', 'the password of metadata.url'],
          ...['storage.s3.access_key_id', 'storage.s3.secret_access_key', 'storage.s3.session_token'],
        ]) {
          expect(stderr).toContain(name)
        }
      }
    }
  },
)

test('the settings for people have masked secrets', async () => {
  const { exitCode, stdout, stderr } = await runBerthHere(['config'], environment, newFolder())

  expect(exitCode).toBe(0)
  expect(stdout).toContain('server.port: 0\n')
  expect(stdout).toContain('identity.admin_api_key: [secret]')
  expect(stdout + stderr).not.toContain('hush')
})
