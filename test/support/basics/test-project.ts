// The repository's folder, and the credentials that every test server accepts.
import { dirname } from 'node:path'

export const projectRoot = dirname(dirname(dirname(import.meta.dir)))
export const testApiKey = 'berth_test_0123456789abcdefghijklmnopqrstuvwxyz'
export const testAdminPassword = 'a password for tests only'

/** The settings of a server that accepts them. */
export const adminSettings = {
  BERTH_IDENTITY__ADMIN_API_KEY: testApiKey,
  BERTH_IDENTITY__ADMIN_PASSWORD: testAdminPassword,
} as const
