import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatHostAndPort } from '../lib/ip-addresses.ts'
import { isDataDirServed, usesDataDir } from './data-folder.ts'
import type { Config } from './settings.ts'

// The `host:port` for `docker login`. A running server writes it to a file, so that commands can print it.

/** `0.0.0.0` and `::` mean all addresses, of which the machine itself uses the loopback address. */
const allAddresses = /^(?:0+(?:\.0+){0,3}|[0:]*:[0:]*)$/

/** The address on this machine of a server that listens on `host`. */
export function localAddress({ host }: Pick<Config, 'host'>, port: number): string {
  return formatHostAndPort(allAddresses.test(host) ? '127.0.0.1' : host, port)
}

/** The host that users log in to if `server.public_url` is set. */
export function publicHost({ publicUrl }: Config): string | undefined {
  return publicUrl === undefined ? undefined : new URL(publicUrl).host
}

/** The file is needed because the operating system chooses the port if `server.port` is 0. */
export function writeServerAddress(config: Config, loginHost: string): void {
  if (!usesDataDir(config)) return
  try {
    // Remove it first: a failed write must not leave the address of a server that was killed.
    rmSync(path(config), { force: true })
    writeFileSync(path(config), `${loginHost}\n`)
  } catch {
    // The disk is full. Commands then print the address of the settings.
  }
}

export function removeServerAddress(config: Config): void {
  try {
    rmSync(path(config), { force: true })
  } catch {
    // Commands read the file only while a server runs.
  }
}

/** The address of the server that uses this data folder, or, if none runs, the address of the settings. */
export function findLoginHost(config: Config): string {
  return publicHost(config) ?? readServerAddress(config) ?? localAddress(config, config.port).replace(/:0$/, ':<port>')
}

function readServerAddress(config: Config): string | undefined {
  if (!isDataDirServed(config)) return undefined
  try {
    const address = readFileSync(path(config), 'utf8').trim()
    return address === '' ? undefined : address
  } catch {
    return undefined
  }
}

function path({ dataDir }: Config): string {
  return join(dataDir, 'server.address')
}
