// Where the token of a container may be sent.
import { expect, test } from 'bun:test'
import { credentialsUrl } from '../../../src/app/setting-kinds.ts'

test.each([
  'https://credentials.example.com/role',
  'http://localhost:1338/latest',
  'http://127.0.0.1/x',
  'http://127.8.9.10:80/x?y=z',
  'http://[::1]:9/',
  'http://169.254.170.2/v2/credentials/9c1b',
  'http://169.254.170.23/v1/credentials',
  'http://[fd00:ec2::23]/v1/credentials',
])('%s may get the token', (uri) => expect(credentialsUrl().parse(uri)).toEqual({ value: uri }))

test.each([
  'http://example.com/x',
  'http://169.254.169.254/x',
  'http://169.254.170.3/x',
  'http://169.254.170.231/x',
  'http://10.0.0.1/x',
  'http://[fd00:ec2::24]/x',
  'http://127.0.0.1.example.com/',
  'http://localhost.example.com/',
  'http://127.0.0.1@example.com/',
  'http://user:word@127.0.0.1/',
  'https://user@example.com/',
  'http://127.0.0.1/#x',
  'ftp://127.0.0.1/x',
  'file:///etc/passwd',
  '//127.0.0.1/x',
  'x',
  '',
])('%j may not get the token', (uri) => expect(credentialsUrl().parse(uri)).toBeUndefined())
