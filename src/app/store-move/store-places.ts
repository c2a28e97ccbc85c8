import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../settings.ts'

// Where stores are, in words for people: without anything secret, and equal where the places are.

export function describeMetadata({ databaseUrl, dataDir }: Config): string {
  if (databaseUrl === undefined) return join(realPath(dataDir), 'metadata.sqlite')
  const { host, pathname } = new URL(databaseUrl)
  return `postgres://${host}${pathname}`
}

export function describeBlobs({ bucket, s3Endpoint, s3Region, s3Prefix, dataDir }: Config): string {
  if (bucket === undefined) return join(realPath(dataDir), 'blobs')
  return `${s3Endpoint ?? `https://s3.${s3Region}.amazonaws.com`}/${bucket}/${s3Prefix}`
}

function realPath(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    // Not there yet: then nothing else is that folder.
    return folder
  }
}
