import { statfsSync, statSync } from 'node:fs'
import { dirname, isAbsolute, relative, resolve } from 'node:path'
import { formatHostAndPort } from '../lib/ip-addresses.ts'
import { rootCauseOf } from '../lib/root-cause.ts'
import type { Config } from './settings.ts'

// Explains why a server cannot start: what happened, which setting is involved, and what to do next.

const unprivilegedPortMin = 1_024

export function describeListenFault(error: unknown, { host, port }: Pick<Config, 'host' | 'port'>): unknown {
  const reason = listenReason(codeOf(error), port)
  return reason === undefined ? error : new Error(`cannot listen on ${formatHostAndPort(host, port)}: ${reason}`)
}

function listenReason(code: string | undefined, port: number): string | undefined {
  if (code === 'EADDRINUSE') {
    return 'another process already uses this port; stop that process, or set server.port to a free port'
  }
  if (code === 'EADDRNOTAVAIL' || code === 'EINVAL') {
    return 'this machine has no such address; set server.host to an address of this machine, or to 0.0.0.0 for all of them'
  }
  if (code !== 'EACCES' && code !== 'EPERM') return undefined
  if (port >= unprivilegedPortMin) return 'this user may not open the port; set server.port to another one'
  return `this user may not open a port below ${unprivilegedPortMin}; set server.port to ${unprivilegedPortMin} or more behind a proxy, or give the process the capability CAP_NET_BIND_SERVICE`
}

/** SQLite could not create, read or write a file. It does not say why. */
const sqliteFaults = /^SQLITE_(?:FULL|CANTOPEN|IOERR|READONLY|PERM)/
/** With less free space, SQLite cannot create its files. */
const fullBelowBytes = 256 * 1024

/** Explains an error about the folder `data_dir`. Returns other errors as they are: they name another path, or none. */
export function describeDataFault(error: unknown, { dataDir }: Pick<Config, 'dataDir'>): unknown {
  const reason = dataReason(error, dataDir)
  return reason === undefined ? error : new Error(`cannot use the data folder ${dataDir} (data_dir): ${reason}`)
}

function dataReason(error: unknown, dataDir: string): string | undefined {
  const code = codeOf(error) ?? ''
  const path = pathOf(error)
  if (path !== undefined && !isRelated(path, dataDir)) return undefined
  if (['ENOSPC', 'EDQUOT', 'SQLITE_FULL'].includes(code) || (sqliteFaults.test(code) && isFull(dataDir))) {
    return 'its disk is full; free some space, or set data_dir to a folder on another disk'
  }
  // Socket calls fail with the same codes, but name no path.
  if (path === undefined) return undefined
  if (code === 'ENOTDIR' || code === 'EEXIST') return describeFile(path, dataDir)
  if (code === 'EROFS') {
    return 'its file system is read-only; mount it writable, or set data_dir to a folder on another file system'
  }
  if (!['EACCES', 'EPERM'].includes(code)) return undefined
  const advice =
    'run Berth as the owner, give the folder and all in it to this user (chown -R), or set data_dir to another folder'
  return `the user with the id ${process.getuid?.()} may not write to ${describeOwned(path)}; ${advice}`
}

/** Names the file that is in the place of a folder: the path itself or one of its parents. */
function describeFile(path: string, dataDir: string): string {
  const file = [path, ...parentsOf(path)].find(isFile)
  if (file === undefined) return `${path} is not a folder`
  if (isWithin(dataDir, file)) return `${file} is a file; set data_dir to a folder`
  return `${file} is a file, and Berth needs a folder there; move the file away and start again`
}

function parentsOf(path: string): string[] {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...parentsOf(parent)]
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    // It does not exist, or one of its parents is a file.
    return false
  }
}

/** Whether the path is the folder, is in it, or is one of its parents. */
function isRelated(path: string, folder: string): boolean {
  return isWithin(path, folder) || isWithin(folder, path)
}

function isWithin(path: string, folder: string): boolean {
  const inside = relative(resolve(folder), resolve(path))
  return inside !== '..' && !inside.startsWith('../') && !isAbsolute(inside)
}

function describeOwned(path: string): string {
  try {
    return `${path}, which belongs to the user with the id ${statSync(path).uid}`
  } catch {
    // It does not exist, or this user may not read its folder.
    return path
  }
}

function isFull(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(path)
    return bavail * bsize < fullBelowBytes
  } catch {
    return false
  }
}

function codeOf(error: unknown): string | undefined {
  const cause = causeOf(error)
  return cause !== undefined && 'code' in cause && typeof cause.code === 'string' ? cause.code : undefined
}

function pathOf(error: unknown): string | undefined {
  const cause = causeOf(error)
  return cause !== undefined && 'path' in cause && typeof cause.path === 'string' ? cause.path : undefined
}

function causeOf(error: unknown): Error | undefined {
  return error instanceof Error ? (rootCauseOf(error) ?? error) : undefined
}
