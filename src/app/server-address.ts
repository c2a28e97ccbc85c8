import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatHostAndPort } from '../lib/host-and-port.ts'
import { hasDataHere, isDataDirServed } from './data-folder.ts'
import type { Config } from './settings.ts'

// The address that users of this machine log in to, as `host:port`.

/** `0.0.0.0` and `::` stand for all addresses; the machine itself reaches the server by its loopback address. */
const everywhere = /^(?:0+(?:\.0+){0,3}|[0:]*:[0:]*)$/

/** Where this machine reaches a server that listens on the host. */
export function localAddress({ host }: Pick<Config, 'host'>, port: number): string {
  return formatHostAndPort(everywhere.test(host) ? '127.0.0.1' : host, port)
}

/** What users log in to, where a proxy stands in front. */
export function publicHost({ publicUrl }: Config): string | undefined {
  return publicUrl === undefined ? undefined : new URL(publicUrl).host
}

/** For commands beside the server: the port may be one that it was given by the system. */
export function noteServerAddress(config: Config, loginHost: string): void {
  if (!hasDataHere(config)) return
  try {
    // First, so that a failed write does not leave the address of a server that was killed.
    rmSync(path(config), { force: true })
    writeFileSync(path(config), `${loginHost}\n`)
  } catch {
    // The disk is full, and the file is missing or empty. Commands then print the address of the settings.
  }
}

export function forgetServerAddress(config: Config): void {
  try {
    rmSync(path(config), { force: true })
  } catch {
    // The file counts only while a server runs.
  }
}

/** The address that the server on this data folder uses; if none runs, the address that the settings say. */
export function findLoginHost(config: Config): string {
  return publicHost(config) ?? readNotedAddress(config) ?? localAddress(config, config.port).replace(/:0$/, ':<port>')
}

function readNotedAddress(config: Config): string | undefined {
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
