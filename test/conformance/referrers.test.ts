import { testOnBothMounts } from './both-mounts.ts'
import { referrerCases } from './referrer-cases.ts'

testOnBothMounts(referrerCases)
