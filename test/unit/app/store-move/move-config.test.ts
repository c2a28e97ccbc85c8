// The settings of both ends of a move, and the environment variables of each.
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigError, readConfig, readMoveConfigs } from '../../../../src/app/config.ts'
import { describeBlobs, describeMetadata } from '../../../../src/app/store-move/move-ends.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('move-config')

function fileWith(text: string): string {
  const file = join(newFolder(), 'settings.yaml')
  writeFileSync(file, text)
  return file
}

describe('the settings of both ends of a move', () => {
  test('come from two files', () => {
    const { source, target } = readMoveConfigs(fileWith('data_dir: /old'), fileWith('data_dir: /new'), {})

    expect([source.dataDir, target.dataDir]).toEqual(['/old', '/new'])
  })

  test('come from the environment, with a prefix for each end, before the files', () => {
    const environment = {
      BERTH_DATA_DIR: '/old',
      BERTH_STORAGE__S3__BUCKET: 'old-bucket',
      BERTH_TO_METADATA__URL: 'postgres://berth:secret@new/berth',
      BERTH_TO_STORAGE__S3__REGION: 'eu-1',
    }
    const { source, target } = readMoveConfigs(
      fileWith('data_dir: /file'),
      fileWith('data_dir: /new\nstorage: { s3: { bucket: new-bucket, region: us-9 } }'),
      environment,
    )

    expect([source.dataDir, source.bucket, source.databaseUrl]).toEqual(['/old', 'old-bucket', undefined])
    expect([target.dataDir, target.bucket, target.s3Region]).toEqual(['/new', 'new-bucket', 'eu-1'])
    expect(target.databaseUrl).toBe('postgres://berth:secret@new/berth')
  })

  test('share the variables of other programs', () => {
    const { source, target } = readMoveConfigs(fileWith(''), fileWith(''), {
      AWS_REGION: 'mars-1',
      BERTH_TO_DATA_DIR: '/n',
    })

    expect([source.s3Region, target.s3Region]).toEqual(['mars-1', 'mars-1'])
  })

  test('are refused with the name of each wrong setting and its end', () => {
    const read = () =>
      readMoveConfigs(fileWith(''), fileWith('zzz: 1'), { BERTH_TO_SERVER__PORT: 'x', BERTH_TO_NOTHING: '1' })

    expect(read).toThrow(ConfigError)
    for (const words of [
      'target of the move: zzz',
      'target of the move: BERTH_TO_SERVER__PORT: "x"',
      'target of the move: BERTH_TO_NOTHING',
    ]) {
      expect(read).toThrow(words)
    }
  })
})

describe('the place of a store', () => {
  const described = (environment: Readonly<Record<string, string>>) => {
    const config = readConfig(fileWith(''), environment)
    return [describeMetadata(config), describeBlobs(config)]
  }

  test('is described without secrets', () => {
    const secrets = {
      BERTH_METADATA__URL: 'postgres://berth:canary@db.example.com:5433/berth?password=canary',
      BERTH_STORAGE__S3__BUCKET: 'images',
      BERTH_STORAGE__S3__PREFIX: 'berth/',
      BERTH_STORAGE__S3__ACCESS_KEY_ID: 'canary',
      BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'canary-canary',
    }
    expect(described(secrets)).toEqual([
      'postgres://db.example.com:5433/berth',
      'https://s3.us-east-1.amazonaws.com/images/berth/',
    ])
  })

  test('is the same for two names of one folder', () => {
    const folder = newFolder()
    expect(described({ BERTH_DATA_DIR: folder })).toEqual(
      described({ BERTH_DATA_DIR: `${folder}/../${folder.split('/').at(-1)}` }),
    )
    expect(described({ BERTH_DATA_DIR: folder })).not.toEqual(described({ BERTH_DATA_DIR: `${folder}/other` }))
  })
})
