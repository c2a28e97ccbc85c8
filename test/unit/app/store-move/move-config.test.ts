// The settings of both ends of a move, and the environment variables of each.
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig, readMoveConfigs } from '../../../../src/app/config.ts'
import { describeBlobs, describeMetadata } from '../../../../src/app/store-move/move-ends.ts'
import { useTemporaryFolders } from '../../../support/basics/temporary-folders.ts'

const newFolder = useTemporaryFolders('move-config')

function fileWith(text: string): string {
  const file = join(newFolder(), 'settings.yaml')
  writeFileSync(file, text)
  return file
}

function placesOf(environment: Readonly<Record<string, string>>): readonly string[] {
  const config = readConfig(fileWith(''), environment)
  return [describeMetadata(config), describeBlobs(config)]
}

test('come from the environment, with a prefix for each end, and then from two files', () => {
  const { source, target } = readMoveConfigs(
    fileWith('data_dir: /file\nserver: { host: 10.0.0.1 }'),
    fileWith('data_dir: /new\nstorage: { s3: { bucket: new-bucket, region: us-9 } }'),
    {
      BERTH_DATA_DIR: '/old',
      BERTH_STORAGE__S3__BUCKET: 'old-bucket',
      BERTH_TO_METADATA__URL: 'postgres://berth:secret@new/berth',
      BERTH_TO_STORAGE__S3__REGION: 'eu-1',
      // A variable of other programs is for both.
      AWS_REGION: 'mars-1',
    },
  )

  const old = { dataDir: '/old', host: '10.0.0.1', bucket: 'old-bucket', databaseUrl: undefined, s3Region: 'mars-1' }
  expect(source).toMatchObject(old)
  expect(target).toMatchObject({
    ...{ dataDir: '/new', host: '127.0.0.1', bucket: 'new-bucket', s3Region: 'eu-1' },
    databaseUrl: 'postgres://berth:secret@new/berth',
  })
})

test('the place of a store is described without secrets', () => {
  const secrets = {
    BERTH_METADATA__URL: 'postgres://berth:canary@db.example.com:5433/berth?password=canary',
    BERTH_STORAGE__S3__BUCKET: 'images',
    BERTH_STORAGE__S3__PREFIX: 'berth/',
    BERTH_STORAGE__S3__ACCESS_KEY_ID: 'canary',
    BERTH_STORAGE__S3__SECRET_ACCESS_KEY: 'canary-canary',
  }
  expect(placesOf(secrets)).toEqual([
    'postgres://db.example.com:5433/berth',
    'https://s3.us-east-1.amazonaws.com/images/berth/',
  ])
})

test('the place of a store is the same for two names of one folder', () => {
  const folder = newFolder()
  const places = placesOf({ BERTH_DATA_DIR: folder })
  expect(placesOf({ BERTH_DATA_DIR: `${folder}/../${folder.split('/').at(-1)}` })).toEqual(places)
  expect(placesOf({ BERTH_DATA_DIR: `${folder}/other` })).not.toEqual(places)
})
